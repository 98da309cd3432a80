import { setTimeout as sleep } from "node:timers/promises";
import type { QueueStats } from "../../observe/queue-stats.ts";
import { defineCommand } from "../command.ts";
import { formatDistance, formatDuration, formatInstant, parseDuration } from "../durations.ts";
import { EXIT } from "../exit-code.ts";
import { quoted } from "../output.ts";
import type { Session } from "../session.ts";
import { formatCount, formatFacts } from "../table.ts";

export const stats = defineCommand({
  usage: "stats [queue] [--watch]",
  help: `How many messages of each queue are where, and when the next is due; of one queue, all
numbers. Messages are not read: O(log N) for each queue.`,
  words: [0, 1],
  options: { watch: { type: "boolean", short: "w" }, interval: { type: "string" } },
  optionHelp: {
    watch: "prints them again and again, until Ctrl-C",
    interval: "how often; defaults to 2s",
  },
  async run(session, [name], { watch = false, interval = "2s" }) {
    const pause = Math.max(100, parseDuration("--interval", interval));
    for (;;) {
      const isFound =
        name === undefined ? await printAll(session, watch) : await printOne(session, name, watch);
      if (!watch) return isFound ? EXIT.done : EXIT.nothing;
      await sleep(pause, undefined, { signal: session.signal });
    }
  },
});

async function printOne(session: Session, name: string, isWatching: boolean): Promise<boolean> {
  const { output, isJson } = session;
  const queue = await session.open(name);
  if (isJson) {
    await output.json({ queue: name, partitions: queue.partitions, ...queue.stats });
    return true;
  }
  if (isWatching) output.clear();
  const { kind } = queue.stats;
  const what = queue.partitions > 0 ? `${kind}, in ${queue.partitions} partitions` : kind;
  await output.print(`Queue ${quoted(name)} (${what})`, ...formatFacts(factsOf(queue.stats)));
  return true;
}

async function printAll(session: Session, isWatching: boolean): Promise<boolean> {
  const { output, isJson, signal } = session;
  const inspector = await session.inspector();
  const all: [name: string, found: QueueStats][] = [];
  for (const name of await inspector.names(signal)) {
    all.push([name, (await inspector.open(name, signal)).stats]);
  }
  if (isJson) {
    for (const [queue, found] of all) await output.json({ queue, ...found });
    return all.length > 0;
  }
  if (isWatching) output.clear();
  if (all.length === 0) output.say("There are no queues.");
  else
    await output.table(
      COLUMNS,
      all.map(([name, found]) => rowOf(name, found)),
    );
  return all.length > 0;
}

const COLUMNS = [
  { title: "QUEUE", canShrink: true },
  ...["DELAYED", "OVERDUE", "READY", "IN FLIGHT", "RETRIES", "DEAD"].map(
    (title) => ({ title, align: "right" }) as const,
  ),
  { title: "NEXT" },
];

function rowOf(name: string, found: QueueStats): string[] {
  const { delayed, overdue, ready, inFlight, retries, dead, nextDeadline, serverTime } = found;
  const counts = [delayed, overdue, ready, inFlight, retries, dead].map(formatCount);
  const next = nextDeadline === undefined ? "-" : formatDistance(nextDeadline, serverTime);
  return [name, ...counts, found.isPaused ? "paused" : next];
}

function factsOf(found: QueueStats): [name: string, value: string][] {
  const { serverTime, nextDeadline, oldestReadyAge, consumers, listeners } = found;
  const next =
    nextDeadline === undefined
      ? "none"
      : `${formatInstant(nextDeadline)} (${formatDistance(nextDeadline, serverTime)})`;
  return [
    ["delayed", formatCount(found.delayed)],
    ["overdue", formatCount(found.overdue)],
    ["ready", formatCount(found.ready)],
    ["in flight", formatCount(found.inFlight)],
    ["retries", formatCount(found.retries)],
    ["dead", formatCount(found.dead)],
    ["quarantined", formatCount(found.quarantined)],
    ["next due", next],
    ["oldest ready", oldestReadyAge === undefined ? "-" : `${formatDuration(oldestReadyAge)} ago`],
    ["consumers", consumers === undefined ? "not known" : formatCount(consumers)],
    ["listeners", listeners === undefined ? "not known" : formatCount(listeners)],
    ["paused", found.isPaused ? "yes" : "no"],
  ];
}
