import { packTrailer } from "../../../queue/message/trailer.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { messagesIn } from "../../inspect/locate.ts";
import { sightMessage, type MessageState, type Sighting } from "../../inspect/sighting.ts";
import { suggest } from "../../inspect/text.ts";
import { parseCount, UsageError } from "../session/arguments.ts";
import { defineCommand, EXIT } from "../session/command.ts";
import { printMessages } from "../session/message-view.ts";
import { quoted } from "../session/output.ts";

export const list = defineCommand({
  usage: "list <queue> [--state <state>] [--limit <count>]",
  help: `Lists the messages of a queue in one state: delayed (in the order of their deadlines),
retrying, ready, in-flight or dead. Ready messages of a plain queue are not listed: they
have no ids.`,
  words: [1, 1],
  options: {
    state: { type: "string", value: "<state>" },
    limit: { type: "string", value: "<count>" },
    payload: { type: "boolean" },
  },
  optionHelp: {
    state: "lists messages in this state; defaults to delayed",
    limit: "lists no more than this many; defaults to 20",
    payload: "shows payloads in readable form",
  },
  async run(session, [name = ""], { state: given = "delayed", limit = "20", payload = false }) {
    const state = parseState(given);
    const count = parseCount("--limit", limit, 1, Number.MAX_SAFE_INTEGER);
    const queue = await session.open(name);
    const { signal, output } = session;
    const found = firstOf(messagesIn(queue, state, { signal }), count);
    const printed = await printMessages(session, found, queue.stats.serverTime, payload);
    if (printed === 0) output.say(`No message of queue ${quoted(name)} is ${state}.`);
    return printed > 0 ? EXIT.done : EXIT.nothing;
  },
});

const STATES: readonly MessageState[] = ["delayed", "retrying", "ready", "in flight", "dead"];

function parseState(given: string): MessageState {
  const state = STATES.find((one) => one === given.replaceAll("-", " "));
  if (state !== undefined) return state;
  const near = suggest(given, STATES);
  throw new UsageError(
    `--state must be delayed, retrying, ready, in-flight or dead, got ${JSON.stringify(given)}${near === undefined ? "" : `; did you mean ${near.replace(" ", "-")}?`}`,
  );
}

async function* firstOf(
  messages: AsyncIterable<Sighting>,
  count: number,
): AsyncGenerator<Sighting, void, void> {
  let left = count;
  for await (const message of messages) {
    yield message;
    if (--left === 0) return;
  }
}

export const search = defineCommand({
  usage: "search [queue] --prefix <prefix>",
  help: `Finds the delayed messages whose keys begin with a prefix, in no particular order. Searches
all queues unless you name one. Reads every key of a queue, in bounded steps.`,
  words: [0, 1],
  options: { prefix: { type: "string", value: "<prefix>" }, payload: { type: "boolean" } },
  optionHelp: {
    prefix: "finds keys that begin with this, such as order:",
    payload: "shows payloads in readable form",
  },
  async run(session, [name], { prefix = "", payload = false }) {
    if (prefix === "") throw new UsageError("give a --prefix that is not empty");
    const { output, isJson, signal } = session;
    let count = 0;
    const look = async (queue: InspectedQueue) => {
      if (name === undefined && !isJson) output.progress(`Searching ${quoted(queue.name)} ...`);
      const found = withPrefix(queue, prefix, signal);
      count += await printMessages(session, found, queue.stats.serverTime, payload);
    };
    let refused = 0;
    if (name === undefined) ({ refused } = await session.eachQueue(look));
    else await look(await session.open(name));
    if (count === 0) output.say(`No delayed message has a key that begins with ${quoted(prefix)}.`);
    if (refused > 0) return EXIT.redis;
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});

async function* withPrefix(
  { name, messages }: InspectedQueue,
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<Sighting, void, void> {
  for await (const message of messages.find({ prefix }, { signal })) {
    const { key = "", headers = {} } = message;
    const payload = Buffer.from(message.payload);
    const trailer = packTrailer({ key, headers });
    yield sightMessage({ queue: name, partition: undefined }, { ...message, payload, trailer });
  }
}
