import { QUEUE_GAUGES } from "../../../observe/queue-gauges.ts";
import { escapeControl } from "../../inspect/text.ts";
import { defineCommand, EXIT } from "../session/command.ts";
import { formatCount, numberColumn, quoted, type Column } from "../session/output.ts";

export const queues = defineCommand({
  usage: "queues",
  help: `Lists the names of all queues in alphabetical order. Scans the names of all keys in the
database. A plain queue that holds only ready messages is listed until an hour after the
last transfer.`,
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
  usage: "partitions <queue>",
  help: `Lists the partitions of a queue: how many messages each holds, which server it is on, and
which process consumes it exclusively. O(log N) per partition.`,
  words: [1, 1],
  options: {},
  optionHelp: {},
  async run(session, [name = ""]) {
    const { output, isJson, signal } = session;
    await session.open(name);
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

/** The numbers that have a column. */
const COUNTS = ["delayed", "ready", "inFlight", "retries"] as const;

const COLUMNS: readonly Column[] = [
  numberColumn("partition"),
  ...COUNTS.map((name) => numberColumn(QUEUE_GAUGES[name].label)),
  { title: "SERVER", canShrink: true },
  { title: "HOLDER", canShrink: true },
];
