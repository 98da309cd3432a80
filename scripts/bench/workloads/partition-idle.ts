import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../figure.ts";
import { SentCommands } from "../sent-commands.ts";
import { Staff } from "../staff.ts";
import type { Workload } from "../workload.ts";

/**
 * The commands of idle processes. Every client checks each of its connections once a second (`time`, `ping`) and sends
 * a blocking call every two seconds; the ordinary queue shows how much that is.
 */
export const partitionIdle: Workload = {
  name: "partition-idle",
  group: "partitions",
  title: "commands that a waiting process sends in a second, 3 processes, 1 server",
  async round({ isQuick, progress }) {
    const figures: Figure[] = [];
    const seconds = isQuick ? 20 : 60;
    for (const kind of ["plain", "reliable"] as const) {
      for (const [partitions, isExclusive] of [
        [8, false],
        [8, true],
        [undefined, false],
      ] as const) {
        // Only reliable queues are consumed exclusively.
        if (isExclusive && kind === "plain") continue;
        const what = partitions === undefined ? "ordinary" : `P = ${partitions}`;
        const of = `${kind}, ${what}${isExclusive ? ", exclusive" : ""}`;
        progress(`${of}: waiting for ${seconds} s`);
        const crew = { masters: 1, processes: PROCESSES, concurrency: 10 };
        const plan = { ...crew, kind, partitions, isExclusive };
        await using staff = await Staff.start(plan);
        // Blocks are short for as long after something has happened.
        await sleep(SETTLING);
        // The producer's connection would send its checks, too.
        await staff.producer.call("close");
        const commands = await SentCommands.start(staff.site);
        await sleep(seconds * 1000);
        const sent = await commands.end();
        const each = Array.from(
          sent,
          ([name, count]) => [name, count / seconds / PROCESSES] as const,
        );
        figures.push({
          name: `${of}: commands per second`,
          value: each.reduce((sum, [, count]) => sum + count, 0),
          unit: "",
          parts: Object.fromEntries(each),
          ...(isExclusive && { goal: { atMost: 4 } }),
          ...(partitions === 8 && !isExclusive && kind === "plain" && { goal: { atMost: 3 } }),
        });
        const inScripts = commands.inScripts / seconds / PROCESSES;
        figures.push({ name: "  commands that scripts run", value: inScripts, unit: "" });
      }
    }
    return figures;
  },
};

const PROCESSES = 3;

/** Milliseconds. */
const SETTLING = 12_000;
