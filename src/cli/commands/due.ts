import type { InspectedQueue } from "../../inspect/inspector.ts";
import { defineCommand } from "../command/command.ts";
import { formatDuration, formatInstant, parseDuration } from "../words/durations.ts";
import { EXIT } from "../command/exit-code.ts";
import { parseInstant } from "../words/instants.ts";
import { Outlook } from "../printing/outlook.ts";
import { parseCount } from "../words/parse-count.ts";
import type { Session } from "../command/session.ts";
import { formatCount, type Column } from "../printing/table.ts";
import { UsageError } from "../words/usage-error.ts";

export const due = defineCommand({
  usage: "due [queue] [--at <time>] [--step <duration>] [--count <count>]",
  help: `How many messages and retries fall due when, from now on or from a time on, and how many
are overdue now; without a queue, of all queues, and which of them has how much of it.
Spans in which nothing falls due are left out, but for the one at --at.
  delayline due --at tomorrow 09:00            what falls due at nine tomorrow
  delayline due orders --step 15m --count 96   the coming day, by the quarter
Times are those of this machine; TZ=Europe/Berlin before the command asks for others.
O(log N) for each span.`,
  words: [0, 1],
  options: { at: { type: "string" }, step: { type: "string" }, count: { type: "string" } },
  optionHelp: {
    at: "where the first span begins: 09:00 is the next nine o'clock; tomorrow 09:00, monday 09:00, 2026-11-22T09:00, 2h from now; defaults to now",
    step: "how long each span is; defaults to 1h",
    count: "how many spans, 1 to 1000; defaults to 24",
  },
  async run(session, [name], { at, step: length = "1h", count: number = "24" }) {
    const step = Math.round(parseDuration("--step", length));
    if (step < 1 || step > LONGEST) {
      throw new UsageError(`--step must be between 1ms and 3650d, got ${JSON.stringify(length)}`);
    }
    const count = parseCount("--count", number, 1, 1000);
    const beginAt = (now: number) => (at === undefined ? now : parseInstant("--at", at, now));
    // What is not legal is refused before Redis is asked.
    beginAt(Date.now());
    const { output, isJson, signal } = session;
    const inspector = await session.inspector();
    const from = beginAt(Math.floor(await inspector.line.serverTime()));
    const outlook = new Outlook(count);
    const look = async (queue: InspectedQueue) => {
      const counts = await comingIn(queue, { from, step, count, signal });
      outlook.add(queue.name, queue.stats.overdue, counts);
    };
    let refused = 0;
    if (name === undefined) ({ refused } = await session.eachQueue(look));
    else await look(await session.open(name));
    const { counts, total, overdue, queues } = outlook;
    if (isJson) {
      const each = name === undefined ? { queues } : {};
      await output.json({ queue: name, overdue, from, step, counts, total, ...each });
    } else {
      await printSpans(session, outlook, { from, step, isAsked: at !== undefined });
      if (queues.length > 1) await printQueues(session, outlook);
      const until = formatInstant(from + count * step);
      output.say(
        `From ${formatInstant(from)} until ${until}, in spans of ${formatDuration(step)}: ${formatCount(total)}.`,
      );
      if (overdue > 0) {
        const about = name === undefined ? [] : [name];
        session.hint(`Overdue now: ${formatCount(overdue)}.`, "Why", "doctor", ...about);
      }
    }
    if (refused > 0) return EXIT.redis;
    // Who names a time asks about that time.
    return total > 0 || (at === undefined && overdue > 0) ? EXIT.done : EXIT.nothing;
  },
});

/**
 * How many messages fall due in each span, without those that were overdue when the queue was opened: they are counted
 * already.
 */
async function comingIn(
  { messages, stats }: InspectedQueue,
  { from, step, count, signal }: { from: number; step: number; count: number; signal: AbortSignal },
): Promise<number[]> {
  const begin = Math.max(from, Math.floor(stats.serverTime) + 1);
  const past = Math.min(count, Math.floor((begin - from) / step));
  const counts = Array.from({ length: past }, () => 0);
  if (past === count) return counts;
  // The span in which it was opened is partly over.
  const next = begin === from ? from : from + (past + 1) * step;
  if (next > begin) {
    const rest = { from: begin, step: next - begin, count: 1, signal };
    counts.push(...(await messages.forecast(rest)).counts);
  }
  if (counts.length === count) return counts;
  const others = { from: next, step, count: count - counts.length, signal };
  return [...counts, ...(await messages.forecast(others)).counts];
}

/** What is overdue, and each span in which something falls due; of several queues which of them have most of it. */
async function printSpans(
  { output }: Session,
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

/** How much of it each queue has, and the sum. */
async function printQueues({ output }: Session, outlook: Outlook): Promise<void> {
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

/** At least one character, unless there is nothing. */
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

/** The longest span, in milliseconds: a thousand of them behind any date are still before the latest deadline. */
const LONGEST = 3650 * 86_400_000;

/** How long the longest bar is. */
const WIDE = 36;
const NARROW = 12;

/** Rows of queues. */
const MOST_QUEUES = 20;
