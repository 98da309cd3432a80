import { RedisError, type QueueStats } from "../../../index.ts";
import { NUMBERS, PAUSED, SHOWN, sleepForNetwork, valueOf } from "../../../inside.ts";
import { problemsOf } from "../../view/health.ts";
import { parseDuration } from "../session/arguments.ts";
import { formatPairs, numberColumn, quoted } from "../session/output.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import { problemsIn, stateOf } from "../../view/problems.ts";
import type { Session } from "../session/session.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDistance, formatDuration } from "../../view/words.js";
import { refusalInWords } from "../../view/trouble.ts";

export const stats = defineCommand({
  usage: "stats [queue] [--watch]",
  help: `Counts the messages of each queue by state, and shows when the next one is due. Shows all
numbers of a queue if you name it. Reads no messages: O(log N) per queue.`,
  words: [0, 1],
  options: {
    watch: { type: "boolean", short: "w" },
    interval: { type: "string", value: "<duration>" },
  },
  optionHelp: {
    watch: "repeats until Ctrl-C",
    interval: "repeats this often, with --watch; defaults to 2s",
  },
  async run(session, [name], { watch = false, interval = "2s" }) {
    const pause = Math.max(100, parseDuration("--interval", interval));
    for (;;) {
      try {
        const code =
          name === undefined
            ? await printAll(session, watch)
            : await printOne(session, name, watch);
        if (!watch) return code;
      } catch (error) {
        // Redis may be unreachable for a moment.
        if (!watch || !(error instanceof RedisError) || session.signal.aborted) throw error;
        session.output.say(`${error.message}; trying again`);
      }
      await sleepForNetwork(pause, session.signal);
      session.signal.throwIfAborted();
    }
  },
});

async function printOne(session: Session, name: string, isWatching: boolean): Promise<ExitCode> {
  const { output, isJson } = session;
  const queue = await session.open(name);
  if (isJson) {
    await output.json({ queue: name, partitions: queue.partitions, ...queue.stats });
    return EXIT.done;
  }
  if (isWatching) output.clear();
  const { kind } = queue.stats;
  const what = queue.partitions > 0 ? `${kind}, in ${queue.partitions} partitions` : kind;
  await output.print(`Queue ${quoted(name)} (${what})`, ...formatPairs(pairsOf(queue.stats)));
  const problems = problemsIn(queue.stats).map(({ text }) => text);
  await sayRefusal(session, name);
  if (problems.length > 0) {
    session.hint(`Needs attention: ${problems.join("; ")}.`, WHY, "doctor", name);
  }
  return EXIT.done;
}

async function printAll(session: Session, isWatching: boolean): Promise<ExitCode> {
  const { output, isJson } = session;
  const all: [name: string, found: QueueStats][] = [];
  const broken: [name: string, why: string][] = [];
  await session.eachQueue(
    async ({ name, stats: found }) => {
      all.push([name, found]);
    },
    (name, { reply, message }) => broken.push([name, reply ?? message]),
  );
  const found = all.length > 0 ? EXIT.done : EXIT.nothing;
  const code = broken.length > 0 ? EXIT.redis : found;
  if (isJson) {
    for (const [queue, numbers] of all) await output.json({ queue, ...numbers });
    for (const [queue, error] of broken) await output.json({ queue, error });
    return code;
  }
  if (isWatching) output.clear();
  if (all.length + broken.length === 0) {
    output.say(
      "There are no queues. A queue whose ready messages only Java has moved may have been missed: name it.",
    );
  } else {
    const counts = all.some(([, { dropped }]) => dropped > 0) ? WITH_DROPPED : COUNTS;
    const rows = all.map(([name, numbers]) => rowOf(name, numbers, counts));
    const refusals = broken.map(([name, why]) => [name, ...counts.map(() => "?"), why]);
    await output.table(columnsOf(counts), [...rows, ...refusals]);
    await sayRefusal(session, all[0]?.[0]);
    const ill = all.filter(([, numbers]) => problemsOf(numbers).length > 0).length;
    if (ill + broken.length > 0) {
      const of = `${ill + broken.length} of ${all.length + broken.length} queues`;
      session.hint(`Needs attention: ${of}.`, WHY, "doctor");
    }
  }
  return code;
}

/** Says so if Redis refuses every write: the numbers can be read all the same. */
async function sayRefusal(session: Session, queue: string | undefined): Promise<void> {
  const cause = await (await session.inspector()).refusal(queue, session.signal);
  if (cause === undefined) return;
  session.hint(`${refusalInWords(cause)}.`, "The repair", "doctor");
}

const WHY = "To find out why";

/** The numbers that have a column. */
const COUNTS = ["delayed", "overdue", "ready", "inFlight", "retries", "dead"] as const;

/** The same where any queue has dropped a message. */
const WITH_DROPPED = [...COUNTS, "dropped"] as const;

type Counts = readonly (typeof WITH_DROPPED)[number][];

function columnsOf(counts: Counts) {
  return [
    { title: "QUEUE", canShrink: true },
    ...counts.map((name) => numberColumn(NUMBERS[name].label)),
    { title: "NEXT" },
  ];
}

function rowOf(name: string, found: QueueStats, counts: Counts): string[] {
  return [name, ...counts.map((count) => formatCount(found[count])), stateOf(found)];
}

function pairsOf(found: QueueStats): [name: string, value: string][] {
  // The line of the next deadline says how long it has passed.
  const pairs = SHOWN.filter(({ name }) => name !== "overdueBy").map(
    ({ name, label, unit }): [string, string] => [
      label,
      shown(valueOf(name, found, found.serverTime), unit, found.serverTime),
    ],
  );
  return [...pairs, [PAUSED.label, found.isPaused ? "yes" : "no"]];
}

function shown(
  value: number | undefined,
  unit: (typeof SHOWN)[number]["unit"],
  now: number,
): string {
  if (unit === "instant") {
    return value === undefined ? "none" : `${formatInstant(value)} (${formatDistance(value, now)})`;
  }
  if (unit === "duration") return value === undefined ? "-" : `for ${formatDuration(value)}`;
  return value === undefined ? "not known" : formatCount(value);
}
