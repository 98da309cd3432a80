import { messagesIn } from "../../inspect/messages-in.ts";
import type { MessageState, Sighting } from "../../inspect/sighting.ts";
import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { printMessages } from "../command/print-messages.ts";
import { parseCount } from "../words/parse-count.ts";
import { suggest } from "../words/suggest.ts";
import { UsageError } from "../words/usage-error.ts";

export const list = defineCommand({
  usage: "list <queue> [--state <state>] [--limit <count>]",
  help: `The messages of a queue in one state: delayed (by their deadlines), retrying, ready,
in-flight or dead. What is ready in a plain queue is not listed: there it has no id.`,
  words: [1, 1],
  options: { state: { type: "string" }, limit: { type: "string" }, payload: { type: "boolean" } },
  optionHelp: {
    state: "which; defaults to delayed",
    limit: "how many at most; defaults to 20",
    payload: "shows payloads, readable and escaped",
  },
  async run(session, [name = ""], { state: given = "delayed", limit = "20", payload = false }) {
    const state = stateOf(given);
    const count = parseCount("--limit", limit, 1, Number.MAX_SAFE_INTEGER);
    const queue = await session.open(name);
    const { signal, output } = session;
    const found = firstOf(messagesIn(queue, state, { signal }), count);
    const printed = await printMessages(session, found, queue.stats.serverTime, payload);
    if (printed === 0) output.say(`No message is ${state}.`);
    return printed > 0 ? EXIT.done : EXIT.nothing;
  },
});

const STATES: readonly MessageState[] = ["delayed", "retrying", "ready", "in flight", "dead"];

function stateOf(given: string): MessageState {
  const state = STATES.find((one) => one === given.replaceAll("-", " "));
  if (state !== undefined) return state;
  const near = suggest(given, STATES);
  throw new UsageError(
    `--state must be delayed, retrying, ready, in-flight or dead, got ${JSON.stringify(given)}${near === undefined ? "" : `; did you mean ${near}?`}`,
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
