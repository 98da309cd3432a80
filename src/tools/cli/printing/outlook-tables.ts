import { formatInstant } from "./format-time.ts";
import type { Outlook } from "./outlook.ts";
import type { Output } from "./output.ts";
import { formatCount, type Column } from "./table.ts";

/**
 * Prints how many messages are overdue, and how many fall due in each span. Leaves out empty spans, except the first
 * if `isAsked`: the user named its time. With several queues, names those with the largest counts in each span.
 */
export async function printSpans(
  output: Output,
  outlook: Outlook,
  { from, step, isAsked }: { from: number; step: number; isAsked: boolean },
): Promise<void> {
  const { counts, overdue } = outlook;
  const isOne = outlook.queues.length < 2;
  const most = Math.max(overdue, ...counts);
  const rowOf = (when: string, count: number, top: string) => [
    when,
    formatCount(count),
    barOf(count / most, isOne ? WIDE : NARROW),
    ...(isOne ? [] : [top]),
  ];
  const rows = counts.flatMap((count, i) =>
    count > 0 || (i === 0 && isAsked)
      ? [
          rowOf(
            formatInstant(from + i * step),
            count,
            outlook.topOf((queue) => queue.counts[i] ?? 0),
          ),
        ]
      : [],
  );
  if (overdue > 0) {
    rows.unshift(
      rowOf(
        "overdue now",
        overdue,
        outlook.topOf((queue) => queue.overdue),
      ),
    );
  }
  if (rows.length > 0) await output.table(isOne ? SPAN_COLUMNS : SPAN_COLUMNS_OF_MANY, rows);
}

/** Prints how many messages of each queue are overdue and fall due, and the sums. */
export async function printQueues(output: Output, outlook: Outlook): Promise<void> {
  const { queues, overdue, total } = outlook;
  const rest = queues.slice(MOST_QUEUES);
  const rows = queues
    .slice(0, MOST_QUEUES)
    .map((one) => [one.queue, formatCount(one.overdue), formatCount(one.total)]);
  if (rest.length > 0) {
    const late = rest.reduce((sum, one) => sum + one.overdue, 0);
    const coming = rest.reduce((sum, one) => sum + one.total, 0);
    rows.push([`(${formatCount(rest.length)} more)`, formatCount(late), formatCount(coming)]);
  }
  await output.print("");
  await output.table(QUEUE_COLUMNS, [
    ...rows,
    ["(total)", formatCount(overdue), formatCount(total)],
  ]);
}

/** A bar of at least one character, unless the share is zero. */
function barOf(share: number, width: number): string {
  return share > 0 ? "#".repeat(Math.max(1, Math.round(share * width))) : "";
}

const SPAN_COLUMNS: readonly Column[] = [
  { title: "FROM" },
  { title: "DUE", align: "right" },
  { title: "" },
];

const SPAN_COLUMNS_OF_MANY: readonly Column[] = [
  ...SPAN_COLUMNS,
  { title: "QUEUES", canShrink: true },
];

const QUEUE_COLUMNS: readonly Column[] = [
  { title: "QUEUE", canShrink: true },
  { title: "OVERDUE", align: "right" },
  { title: "DUE", align: "right" },
];

/** Characters of the longest bar. */
const WIDE = 36;
const NARROW = 12;

/** How many queues have rows of their own. */
const MOST_QUEUES = 20;
