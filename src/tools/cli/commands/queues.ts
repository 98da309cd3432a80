import { LIMITS, NUMBERS } from "../../../inside.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { escapeControl } from "../../view/text.ts";
import { parseCount, UsageError } from "../session/arguments.ts";
import { CHANGING, CHANGING_HELP, defineCommand } from "../session/command.ts";
import { EXIT, type ExitCode } from "../session/exit.ts";
import { numberColumn, quoted, type Column } from "../session/output.ts";
import { confirm, type Session } from "../session/session.ts";
import { formatCount } from "../../view/words.js";

export const queues = defineCommand({
  usage: "queues",
  help: `Lists the names of all queues in alphabetical order. Scans the names of all keys in the
database. A plain queue that holds only ready messages is listed until 30 days after a Node
process last had it open.`,
  words: [0, 0],
  options: {},
  optionHelp: {},
  async run(session) {
    const { output, isJson, signal } = session;
    const names = await (await session.inspector()).names(signal);
    for (const name of names) {
      if (isJson) await output.json({ queue: name });
      else await output.print(escapeControl(name));
    }
    if (names.length === 0) output.say("There are no queues.");
    return names.length > 0 ? EXIT.done : EXIT.nothing;
  },
});

export const partitions = defineCommand({
  usage: "partitions <queue> [--finish | --set <count>]",
  help: `Lists the partitions of a queue: how many messages each holds, which server it is on, and
which process consumes it exclusively. O(log N) per partition.
With --set or --finish it changes the number of partitions while the queue is in use, as
setPartitions does, and waits until every message is where it belongs. After Ctrl-C, run it
again: nothing is lost.`,
  words: [1, 1],
  options: {
    ...CHANGING,
    finish: { type: "boolean" },
    set: { type: "string", value: "<count>" },
  },
  optionHelp: {
    ...CHANGING_HELP,
    finish: "finishes a change whose process has died, and takes in what the ordinary queue holds",
    set: "changes the number of partitions; 1 to 256",
  },
  async run(session, [name = ""], { finish = false, set, ...values }) {
    if (finish && set !== undefined) throw new UsageError("give either --finish or --set");
    const wanted = set === undefined ? undefined : parseCount("--set", set, 1, LIMITS.partitions);
    const queue = await session.open(name);
    if (finish || wanted !== undefined) return await change(session, queue, wanted, values);
    const { output, isJson, signal } = session;
    const all = await (await session.inspector()).line.partitions(name, { signal });
    if (all.length === 0) output.say(`Queue ${quoted(name)} has no partitions.`);
    else if (isJson) for (const one of all) await output.json(one);
    else {
      const rows = all.map(({ partition, node = "-", holder = "-", ...numbers }) => {
        const counts = COUNTS.map((count) => formatCount(numbers[count]));
        return [String(partition), ...counts, node, holder];
      });
      await output.table(COLUMNS, rows);
    }
    return all.length > 0 ? EXIT.done : EXIT.nothing;
  },
});

/** Changes the number of partitions to `wanted`, or finishes the change under way. */
async function change(
  session: Session,
  { name, inside }: InspectedQueue,
  wanted: number | undefined,
  values: { yes?: boolean; "dry-run"?: boolean },
): Promise<ExitCode> {
  const { output, isJson, signal } = session;
  const { line } = await session.inspector();
  const fact = await inside.fact({ signal });
  const count = wanted ?? fact?.to;
  if (count === undefined) {
    output.say(`Queue ${quoted(name)} has no partitions.`);
    return EXIT.nothing;
  }
  const from = fact === undefined ? "an ordinary queue" : formatCount(fact.from, "partition");
  const asked =
    wanted === undefined
      ? `finish the change of queue ${quoted(name)} to ${formatCount(count, "partition")}`
      : `change queue ${quoted(name)} from ${from} to ${formatCount(count, "partition")}`;
  if (!(await confirm(session, asked, values))) return EXIT.done;
  let migrated = 0;
  await line.setPartitions(name, count, {
    signal,
    onProgress: ({ moved, left }) => {
      migrated = moved;
      const waits = left === 0 ? "" : `; waiting for ${formatCount(left)} in partitions that go`;
      output.progress(`${formatCount(moved, "message")} migrated${waits} ...`);
    },
  });
  if (isJson) await output.json({ queue: name, partitions: count, migrated });
  else
    await output.print(
      `Queue ${quoted(name)} has ${formatCount(count, "partition")}; ${formatCount(migrated, "message")} migrated.`,
    );
  return EXIT.done;
}

/** The numbers that have a column. */
const COUNTS = ["delayed", "ready", "inFlight", "retries"] as const;

const COLUMNS: readonly Column[] = [
  numberColumn("partition"),
  ...COUNTS.map((name) => numberColumn(NUMBERS[name].label)),
  { title: "SERVER", canShrink: true },
  { title: "HOLDER", canShrink: true },
];
