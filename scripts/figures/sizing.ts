import { format } from "../bench/table.ts";
import { cell, figureOf, originOf, table } from "./tables.ts";
import { newest } from "./results.ts";

// The tables of docs/operations/sizing.md: what a message takes of memory, of Redis's time and of a process.

/** Bytes by place, for two sizes of payloads. */
export function memoryTable(): string {
  const places = ["delayed", "delayed, with a key", "ready", "retrying"];
  const rows = [100, 1024].map((size) => {
    const bytes = places.map((place) => figureOf("memory", `${place}, payload ${size} B`).median);
    const [delayed = NaN] = bytes;
    return [
      `${count(size)} B`,
      ...bytes.map((one) => count(one)),
      delayed < 1000 ? `${count(delayed)} MB` : `${(delayed / 1000).toFixed(1)} GB`,
    ];
  });
  return table([originOf(newest("memory")), ...places, "a million delayed"], rows);
}

const KINDS = ["delayline", "delayline-reliable"];

/** What one Redis thread, one offering process and one worker can carry. */
export function speedTable(): string {
  const rows = [
    ...redisRows(
      "2,000/s, one by one",
      "compare lateness",
      "Redis processor time per message, 2,000/s",
    ),
    ...redisRows(
      "a herd that falls due at once",
      "compare burst",
      "Redis processor time per message",
    ),
    rates("one process offers, one by one", "compare offers", "one by one"),
    rates("one process offers, 100 in flight", "compare offers", "100 in flight"),
    rates("one worker takes; reliable: and acknowledges", "compare acknowledged", "handled"),
  ];
  return table([originOf(newest("compare acknowledged")), "plain", "reliable"], rows);
}

/** Redis's time for a message, and how many of them fill its thread. */
function redisRows(what: string, of: string, name: string): string[][] {
  const times = KINDS.map((kind) => figureOf(of, name, kind).median);
  return [
    [`Redis's time for a message: ${what}`, ...times.map((time) => format(time, "us"))],
    [
      "so one Redis thread is full at",
      ...times.map((time) => `${count(Math.round(10_000 / time) * 100)}/s`),
    ],
  ];
}

function rates(what: string, of: string, name: string): string[] {
  return [what, ...KINDS.map((kind) => cell(figureOf(of, name, kind)))];
}

/** Commands of a message that shares nothing with others. */
export function aloneTable(): string {
  const gaps = ["the next one at once", "the next one after 1 s"];
  const rows = gaps.map((gap) => [
    gap,
    ...["plain", "reliable"].map((kind) =>
      cell(figureOf("alone", `${kind}: commands of a message, ${gap}`)),
    ),
  ]);
  return table([originOf(newest("alone")), "plain", "reliable"], rows);
}

/** What waiting processes send. */
export function restingTable(): string {
  const measured = newest("compare resting");
  const columns = measured.columns.filter(({ peer }) => KINDS.includes(peer));
  const names = columns[0]?.figures.map(({ name }) => name) ?? [];
  const rows = names.map((name) => [
    name,
    ...columns.map(({ figures }) => cell(figures.find((figure) => figure.name === name))),
  ]);
  return table([originOf(measured), "plain", "reliable"], rows);
}

/** How the cost of a message depends on partitions, clients and what is delayed. */
export function clusterTable(): string {
  const measured = newest("ten-million-cluster");
  const rows: string[][] = [];
  // A row begins with a figure that is named after the plan, and has those that follow.
  for (const figure of measured.columns[0]?.figures ?? []) {
    const [, ...plan] =
      /^P = (\d+), (\d+) client\(s\), ([\d,]+) delayed, (\d+)\/s/.exec(figure.name) ?? [];
    if (plan.length > 0) {
      const [partitions = "", clients = "", delayed = "", rate] = plan;
      rows.push([partitions, clients, count(Number(rate)), delayed]);
    }
    const isShown = SHOWN.some((name) => figure.name.trim().startsWith(name));
    if (isShown) rows.at(-1)?.push(cell(figure));
  }
  const head = [`partitions; ${originOf(measured)}`, "clients", "messages/s", "delayed"];
  return table(
    [...head, "commands per message", "processor time, all nodes", "busiest node", "scripts, p99"],
    rows,
  );
}

const SHOWN = ["commands per message", "processor time of all", "of the busiest", "scripts, p99"];

const count = (n: number) => n.toLocaleString("en-US", { maximumFractionDigits: 0 });
