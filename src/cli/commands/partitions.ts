import { defineCommand } from "../command/command.ts";
import { EXIT } from "../command/exit-code.ts";
import { quoted } from "../printing/output.ts";
import { formatCount, type Column } from "../printing/table.ts";

export const partitions = defineCommand({
  usage: "partitions <queue>",
  help: `The partitions of a queue: what is in each, on which server it is, and which process
consumes it exclusively. O(log N) for each.`,
  words: [1, 1],
  options: {},
  optionHelp: {},
  async run(session, [name = ""]) {
    const { output, isJson, signal } = session;
    await session.open(name);
    const all = await (await session.inspector()).line.partitions(name, { signal });
    if (all.length === 0) output.say(`Queue ${quoted(name)} is an ordinary one.`);
    else if (isJson) for (const one of all) await output.json(one);
    else {
      const rows = all.map(({ partition, delayed, ready, inFlight, node = "-", holder = "-" }) => {
        const counts = [delayed, ready, inFlight].map(formatCount);
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
