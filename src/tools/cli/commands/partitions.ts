import { quoted } from "../printing/output.ts";
import { formatCount, type Column } from "../printing/table.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit-code.ts";

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
      const rows = all.map(({ partition, delayed, ready, inFlight, node = "-", holder = "-" }) => {
        const counts = [delayed, ready, inFlight].map((count) => formatCount(count));
        return [String(partition), ...counts, node, holder];
      });
      await output.table(COLUMNS, rows);
    }
    return all.length > 0 ? EXIT.done : EXIT.nothing;
  },
});

const COLUMNS: readonly Column[] = [
  ...["PARTITION", "DELAYED", "READY", "IN FLIGHT"].map(
    (title) => ({ title, align: "right" }) as const,
  ),
  { title: "SERVER", canShrink: true },
  { title: "HOLDER", canShrink: true },
];
