import { droppedIn } from "../../view/activity.ts";
import { handledIn, type HandledReport } from "../../view/handled.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { locate, type Location } from "../../view/locate.ts";
import { stageOf, type MessageState } from "../../view/sighting.ts";
import { networkTime, sleepForNetwork } from "../../../inside.ts";
import { parseChoice, parseDuration, UsageError } from "../session/arguments.ts";
import {
  describe,
  describeHandled,
  nextStep,
  sightingJson,
  STATE_WORDS,
  stateOf,
} from "../session/message-view.ts";
import { formatPairs, quoted } from "../session/output.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import type { Session } from "../session/session.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDistance, formatDuration } from "../../view/words.js";

/** Where a message may be that this command cannot see. */
const ELSEWHERE = "in another database or under another key prefix";

/** What `--wait` waits for. */
const WAITS: readonly string[] = [...STATE_WORDS, "gone"];

export const get = defineCommand({
  usage: "get [queue] <id or key> [--wait <state>]",
  help: `Shows where a message is, by its id or its business key: delayed, retrying, ready, in flight
or dead, since when, which consumer holds it, and with which command to go on, such as revoke
or cancel; or who has handled it and when, if its consumers have keepHandled; or why it was
dropped when it was due, if it was among the last 1,000 that were. Searches all queues unless
you name one. With --json its stage, too, as revoke names it: running, waiting and others.
Ready messages of a plain queue cannot be found: they have neither id nor key.
O(log N) in a plain queue, and for a delayed message by its id. Otherwise reads all of a
reliable queue, in bounded steps.
With --wait it looks again until the message is in that state; name the queue then. It rests
20 times as long as each look took, and half a second at least.`,
  words: [1, 2],
  options: {
    payload: { type: "boolean" },
    wait: { type: "string", value: "<state>", choices: WAITS },
    within: { type: "string", value: "<duration>" },
  },
  optionHelp: {
    payload: "shows the payload in readable form",
    wait: `waits until it is ${WAITS.slice(0, -1).join(", ")} or gone: handled, cancelled, dropped or removed`,
    within: "gives up after this long, with --wait; defaults to 1m",
  },
  async run(session, words, { payload = false, wait, within = "1m" }) {
    const wanted = words.at(-1) as string;
    if (wait !== undefined) {
      const [name, key] = words;
      if (name === undefined || key === undefined) {
        throw new UsageError("give the queue, too, for --wait");
      }
      const word = parseChoice("--wait", wait, WAITS);
      const until = word === "gone" ? word : stateOf(word);
      const patience = parseDuration("--within", within);
      return await waitFor(session, name, key, until, patience, payload);
    }
    const { output, signal, isJson } = session;
    const mayBeReady: string[] = [];
    const forgetful: string[] = [];
    let found = 0;
    let since: number | undefined;
    const look = async (queue: InspectedQueue) => {
      output.progress(`Searching ${quoted(queue.name)} ...`);
      const location = await locate(queue, wanted, { signal });
      if (location.mayBeReady) mayBeReady.push(queue.name);
      found += location.sightings.length;
      await print(session, wanted, queue, location, payload);
      if (location.sightings.length > 0) return;
      if (await printDropped(session, wanted, queue)) found += 1;
      if (queue.deadLetters === undefined) return;
      const report = await printHandled(session, wanted, queue);
      found += report.found.length;
      ({ since } = report);
      if (since === undefined) forgetful.push(queue.name);
    };
    const isOne = words.length === 2;
    const [name = ""] = words;
    if (isOne) await look(await session.open(name));
    const { count, refused } = isOne ? { count: 1, refused: 0 } : await session.eachQueue(look);
    if (found > 0) return EXIT.done;
    const where = isOne
      ? `queue ${quoted(name)}`
      : `any of ${formatCount(count - refused, "queue")}`;
    const isGone = refused === 0 && mayBeReady.length === 0;
    const why = isGone ? `: it was handled, cancelled or never offered, or is ${ELSEWHERE}` : "";
    output.say(`${quoted(wanted)} is not in ${where}${why}.`);
    if (!isOne) {
      output.say(
        "A queue whose ready messages only Java has moved may have been missed: name it, as in delayline get <queue> <key>.",
      );
    }
    if (isOne && since !== undefined) {
      output.say(`It was not handled there since ${formatInstant(since)}.`);
    } else if (forgetful.length > 0) {
      const who = isOne
        ? `Queue ${quoted(name)} has`
        : `${formatCount(forgetful.length, "reliable queue")} of these ${forgetful.length === 1 ? "has" : "have"}`;
      output.say(
        `${who} no record of what was handled (keepHandled), so nobody can know whether it was.`,
      );
    }
    for (const one of mayBeReady) {
      output.say(
        `It may be ready in ${quoted(one)}: ready messages of a plain queue have neither id nor key.`,
      );
    }
    if (isJson) await output.json({ wanted, found: false, mayBeReadyIn: mayBeReady });
    return refused > 0 ? EXIT.redis : EXIT.nothing;
  },
});

/**
 * Looks for the message until it is in the state, or in no place any more, and prints it. Gives up after `patience`
 * milliseconds.
 */
async function waitFor(
  session: Session,
  name: string,
  wanted: string,
  state: MessageState | "gone",
  patience: number,
  withPayload: boolean,
): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const deadline = networkTime.now() + patience;
  let misses = 0;
  for (;;) {
    const startedAt = networkTime.now();
    const queue = await session.open(name);
    if (queue.stats.kind === "plain" && state !== "delayed" && state !== "gone") {
      throw new UsageError(
        `messages of a plain queue, which ${quoted(name)} is, are seen until they are due: --wait must be delayed or gone`,
      );
    }
    const location = await locate(queue, wanted, { signal });
    const seen = location.sightings.map((one) => one.state);
    // A message that moves on while it is looked for can be missed.
    misses = seen.length === 0 ? misses + 1 : 0;
    if (state === "gone" && misses >= 2) {
      const isDropped = await printDropped(session, wanted, queue);
      const { found } = await printHandled(session, wanted, queue);
      if (isDropped || found.length > 0) return EXIT.done;
      const where = location.mayBeReady
        ? "handled, cancelled or ready"
        : "handled, cancelled or removed";
      if (isJson) await output.json({ wanted, found: false });
      else await output.print(`${quoted(wanted)} is gone from queue ${quoted(name)}: ${where}.`);
      return EXIT.done;
    }
    if (seen.some((one) => one === state)) {
      await print(session, wanted, queue, location, withPayload);
      return EXIT.done;
    }
    const is = seen.length === 0 ? "not there" : seen.join(" and ");
    const rest = Math.max(SHORTEST_REST, 20 * (networkTime.now() - startedAt));
    if (networkTime.now() + rest > deadline) {
      output.say(
        `${quoted(wanted)} is ${is} in queue ${quoted(name)} after ${formatDuration(patience)}.`,
      );
      return EXIT.nothing;
    }
    output.progress(`${quoted(wanted)} is ${is} ...`);
    await sleepForNetwork(rest, signal);
    signal.throwIfAborted();
  }
}

/** Prints who has handled the message, as far as its queue remembers. */
async function printHandled(
  { output, isJson, signal }: Session,
  wanted: string,
  queue: InspectedQueue,
): Promise<HandledReport> {
  const report = await handledIn(queue, wanted, { signal });
  for (const handled of report.found) {
    if (isJson) await output.json({ state: "handled", ...handled });
    else {
      const head = `${quoted(wanted)} was handled in queue ${quoted(queue.name)}.`;
      await output.print(head, ...describeHandled(handled, queue.stats.serverTime));
    }
  }
  return report;
}

/** Prints that the message was dropped when it was due; returns whether its queue remembers that. */
async function printDropped(
  { output, isJson, signal }: Session,
  wanted: string,
  queue: InspectedQueue,
): Promise<boolean> {
  const dropped = await droppedIn(queue, wanted, { signal });
  if (dropped === undefined) return false;
  const { why, droppedAt, id, key } = dropped;
  if (isJson) await output.json({ state: "dropped", ...dropped });
  else {
    const at = `${formatInstant(droppedAt)} (${formatDistance(droppedAt, queue.stats.serverTime)})`;
    const pairs: [string, string][] = [
      ["id", id],
      ...(key ? [["key", key] as [string, string]] : []),
    ];
    await output.print(
      `${quoted(wanted)} was dropped in queue ${quoted(queue.name)} when it was due: ${why}.`,
      ...formatPairs([...pairs, ["dropped", at]]),
    );
  }
  return true;
}

/** Milliseconds between two looks. */
const SHORTEST_REST = 500;

async function print(
  session: Session,
  wanted: string,
  { name, stats }: InspectedQueue,
  { sightings }: Location,
  withPayload: boolean,
): Promise<void> {
  const { output, isJson, commandLine } = session;
  for (const seen of sightings) {
    if (isJson) {
      await output.json({ stage: stageOf(seen), ...sightingJson(seen, withPayload) });
      continue;
    }
    const head = `${quoted(wanted)} is ${seen.state} in queue ${quoted(name)}.`;
    await output.print(head, ...describe(seen, stats.serverTime, withPayload));
    const next = nextStep(seen, stats, commandLine);
    if (next !== undefined) output.say(next);
  }
}
