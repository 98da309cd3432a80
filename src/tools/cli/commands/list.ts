import { PLACES } from "../../../inside.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { messagesIn, messagesWith } from "../../view/locate.ts";
import { MESSAGE_STATES, type MessageState } from "../../view/sighting.ts";
import { parseChoice, UsageError } from "../session/arguments.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import {
  firstOf,
  LIMIT,
  LIMIT_HELP,
  parseLimit,
  printMessages,
  sayRest,
  STATE_WORDS,
  stateOf,
  wordOf,
} from "../session/message-view.ts";
import { quoted } from "../session/output.ts";
import { formatCount } from "../../view/words.js";

export const list = defineCommand({
  usage: "list <queue> [--state <state>] [--limit <count>]",
  help: `Lists the messages of a queue in one state: delayed (in the order of their deadlines),
retrying, ready, in-flight (since when, which attempt, in which process) or dead. Ready
messages of a plain queue are not listed: they have no ids. Says how many it leaves out.`,
  words: [1, 1],
  options: {
    state: { type: "string", value: "<state>", choices: STATE_WORDS },
    ...LIMIT,
    payload: { type: "boolean" },
  },
  optionHelp: {
    state: "lists messages in this state; defaults to delayed",
    ...LIMIT_HELP,
    payload: "shows payloads in readable form",
  },
  async run(session, [name = ""], { state: given, limit, payload = false }) {
    const state = stateOf(parseChoice("--state", given ?? "delayed", STATE_WORDS));
    const count = parseLimit(limit);
    const queue = await session.open(name);
    const { stats } = queue;
    const { signal, output } = session;
    const found = firstOf(messagesIn(queue, state, { signal }), count);
    const printed = await printMessages(session, found, stats.serverTime, payload, state);
    const ofState = (one: MessageState) => stats[PLACES[one].number];
    const total = ofState(state);
    if (state === "ready" && stats.kind === "plain" && total > 0) {
      output.say(
        `Not listed: ${formatCount(total, "ready message")}. In a plain queue they have neither id nor key.`,
      );
    } else if (printed === 0) output.say(`No message of queue ${quoted(name)} is ${state}.`);
    if (printed === count)
      sayRest(session, printed, total, "list", name, ["--state", wordOf(state)]);
    else if (state === "delayed" && printed < total) {
      const said = `Not listed: ${formatCount(total - printed)} more, moved meanwhile or of unknown layout.`;
      session.hint(said, "To find out", "doctor", name);
    }
    const others = MESSAGE_STATES.filter((one) => one !== state && ofState(one) > 0);
    if (given === undefined && others.length > 0) {
      const counts = others.map((one) => `${formatCount(ofState(one))} ${one}`).join(", ");
      const [first = state] = others;
      session.hint(`Also in this queue: ${counts}.`, "To list them", "list", name, [
        "--state",
        wordOf(first),
      ]);
    }
    return printed > 0 ? EXIT.done : EXIT.nothing;
  },
});

export const search = defineCommand({
  usage: "search [queue] --prefix <prefix>",
  help: `Finds the messages whose keys begin with a prefix, in every state: delayed, retrying, ready,
in flight or dead. Searches all queues unless you name one. Ready messages of a plain queue
have no keys. Reads every key of a queue, and all messages of a reliable one, in bounded
steps.`,
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
    let keyless = 0;
    const look = async (queue: InspectedQueue) => {
      if (name === undefined && !isJson) output.progress(`Searching ${quoted(queue.name)} ...`);
      const found = withoutGaps(messagesWith(prefix, queue, { signal }));
      count += await printMessages(session, found, queue.stats.serverTime, payload, "any");
      if (queue.stats.kind === "plain") keyless += queue.stats.ready;
    };
    let refused = 0;
    if (name === undefined) ({ refused } = await session.eachQueue(look));
    else await look(await session.open(name));
    if (count === 0) output.say(`No message has a key that begins with ${quoted(prefix)}.`);
    if (keyless > 0) {
      output.say(
        `Not searched: ${formatCount(keyless, "ready message")} of plain queues, which have no keys.`,
      );
    }
    if (refused > 0) return EXIT.redis;
    return count > 0 ? EXIT.done : EXIT.nothing;
  },
});

async function* withoutGaps<Item>(
  items: AsyncIterable<Item | undefined>,
): AsyncGenerator<Item, void, void> {
  for await (const item of items) if (item !== undefined) yield item;
}
