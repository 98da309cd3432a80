import { messagesIn } from "../../inspect/messages-in.ts";
import type { MessageState, Sighting } from "../../inspect/sighting.ts";
import { suggest } from "../../inspect/suggest.ts";
import { parseCount } from "../parsing/count.ts";
import { UsageError } from "../parsing/usage-error.ts";
import { quoted } from "../printing/output.ts";
import { printMessages } from "../printing/print-messages.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit-code.ts";

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
