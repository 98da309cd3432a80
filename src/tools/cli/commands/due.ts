import type { InspectedQueue } from "../../view/inspector.ts";
import { loadOf, type Beyond } from "../../view/load.ts";
import { parseCount, parseDuration, UsageError } from "../session/arguments.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit.ts";
import { flowOf, printPreview } from "./flow.ts";
import { parseInstant } from "../session/instants.ts";
import { quoted, type Column, type Output } from "../session/output.ts";
import { formatInstant } from "../../view/instants.ts";
import { formatCount, formatDuration } from "../../view/words.js";

export const due = defineCommand({
  usage: "due [queue] [--at <time>] [--step <duration>] [--count <count>]",
  help: `Counts the messages and retries that fall due in each of the coming hours, and those that
are overdue now. Counts all queues unless you name one, and shows which of them have most.
Leaves out spans in which nothing falls due, except the one at --at.
  delayline due --at tomorrow 09:00            from nine o'clock tomorrow
  delayline due orders --step 15m --count 96   one day, in quarter hours
  delayline due orders --step 1m --rate 50/s   and what that rate would do
  delayline due orders --step 1m --flow        and what its flow will do
Times are local; for another zone, begin the command with TZ=Europe/Berlin. Spans of whole
days are calendar days there, of 23 or 25 hours where clocks change. O(log N) per span.`,
  words: [0, 1],
  options: {
    at: { type: "string", value: "<time>" },
    step: { type: "string", value: "<duration>" },
    count: { type: "string", value: "<count>" },
    rate: { type: "string", value: "<rate>" },
    burst: { type: "string", value: "<count>" },
    flow: { type: "boolean" },
  },
  optionHelp: {
    at: "starts the first span at this time: 09:00 (the next nine o'clock), tomorrow 09:00, monday 09:00, 2026-11-22T09:00, now or 2h (from now); defaults to the start of the current span: of the hour, with --step 1h",
    step: "makes each span this long; defaults to 1h; whole days such as 1d are calendar days",
    count: "counts this many spans, 1 to 1000; defaults to 24",
    rate: "shows what would become ready in one queue at this rate, such as 50/s, and what would wait; sets nothing",
    burst: "lets so many go at once with --rate; defaults to what falls to 100 ms, at least 1",
    flow: "shows what becomes ready in one queue with the flow that is set, and what waits; with --rate, with that rate in place of its own",
  },
  async run(session, [name], values) {
    const { at, step: length = "1h", count: number = "24", rate, burst, flow: hasFlow } = values;
    const step = Math.round(parseDuration("--step", length));
    if (step < 1 || step > LONGEST) {
      throw new UsageError(`--step must be between 1ms and 3650d, got ${JSON.stringify(length)}`);
    }
    const count = parseCount("--count", number, 1, 1000);
    const startAt = (now: number) =>
      at === undefined ? startOfSpan(now, step) : parseInstant("--at", at, now);
    const tried = flowOf(rate, burst);
    const isShaped = tried !== undefined || hasFlow === true;
    if (isShaped && name === undefined) {
      throw new UsageError(`${hasFlow === true ? "--flow" : "--rate"} needs a queue`);
    }
    // Refuse an invalid time before connecting to Redis.
    startAt(Date.now());
    const { output, isJson, signal } = session;
    const inspector = await session.inspector();
    const from = startAt(Math.floor(await inspector.line.serverTime()));
    if (isShaped && name !== undefined) {
      const { messages } = await session.open(name);
      const present = hasFlow === true ? await messages.flow.get({ signal }) : undefined;
      const flow = present === undefined ? tried : { ...present, ...tried };
      const spans = { from, step, count, signal };
      const preview = await messages.flow.preview({ ...spans, ...(flow && { flow }) });
      if (isJson) await output.json({ queue: name, flow: flow ?? null, ...preview });
      else await printPreview(output, preview);
      return EXIT.done;
    }
    const bounds = boundsOf(from, step, count);
    const until = bounds.at(-1) ?? from;
    const outlook = new Outlook(count);
    const beyond: Beyond[] = [];
    const look = async (queue: InspectedQueue) => {
      const { overdue, serverTime } = queue.stats;
      // Of a span that has already begun, the rest: what is overdue is counted apart.
      const begin = Math.floor(serverTime) + 1;
      const starts = bounds.map((bound) => Math.max(bound, begin));
      const load = await loadOf(queue, starts, signal);
      outlook.add(queue.name, overdue, load.counts);
      beyond.push(...load.beyond);
    };
    let refused = 0;
    if (name === undefined) ({ refused } = await session.eachQueue(look));
    else await look(await session.open(name));
    const { counts, total, overdue, queues } = outlook;
    if (isJson) {
      const each = name === undefined ? { queues } : {};
      const starts = bounds.slice(0, -1);
      await output.json({
        queue: name,
        overdue,
        from,
        step,
        starts,
        counts,
        total,
        ...each,
        beyond,
      });
    } else {
      await printSpans(output, outlook, bounds, at !== undefined);
      if (queues.length > 1) await printQueues(output, outlook);
      output.say(
        `From ${formatInstant(from)} until ${formatInstant(until)}, in spans of ${formatDuration(step)}: ${formatCount(total)}.`,
      );
      if (beyond.length > 0) {
        const some = beyond
          .slice(0, TOP)
          .map(({ queue, schedule }) => quoted(`${queue}: ${schedule}`));
        const rest = beyond.length > TOP ? ` and ${formatCount(beyond.length - TOP)} more` : "";
        session.hint(
          `Not counted: later ticks of schedules, which are placed shortly before they are due: ${some.join(", ")}${rest}.`,
          "All of them",
          "schedules",
        );
      }
      if (overdue > 0) {
        const about = name === undefined ? [] : [name];
        session.hint(
          `Overdue now: ${formatCount(overdue)}.`,
          "To find out why",
          "doctor",
          ...about,
        );
      }
    }
    if (refused > 0) return EXIT.redis;
    // With --at the question is about that time alone.
    return total > 0 || (at === undefined && overdue > 0) ? EXIT.done : EXIT.nothing;
  },
});

/** The start of the span that `now` is in, where the first span of a day starts at local midnight. */
function startOfSpan(now: number, step: number): number {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  // A day may have 25 hours.
  return step % DAY === 0 ? midnight : midnight + Math.floor((now - midnight) / step) * step;
}

/**
 * Where `count` spans from `from` on begin, and where the last one ends. Spans of whole days are calendar days in local
 * time: each begins at the same time of day as the first, also after clocks have changed.
 */
function boundsOf(from: number, step: number, count: number): number[] {
  return Array.from({ length: count + 1 }, (_, i) => {
    const sum = from + i * step;
    if (step % DAY !== 0) return sum;
    const date = new Date(from);
    const day = date.setDate(date.getDate() + (i * step) / DAY);
    // No Date is so late.
    return Number.isNaN(day) ? sum : day;
  });
}

const DAY = 86_400_000;

/** The longest span, in milliseconds. A thousand of them after any date still end before the latest deadline. */
const LONGEST = 3650 * DAY;

/** The counts of one queue in an {@link Outlook}. */
interface QueueOutlook {
  readonly queue: string;
  /** How many messages and retries are due and have not been moved. */
  readonly overdue: number;
  /** How many fall due in each time span. */
  readonly counts: readonly number[];
  /** The sum over all spans. */
  readonly total: number;
}

/** How many messages of several queues fall due in each of some time spans. */
class Outlook {
  readonly #queues: QueueOutlook[] = [];
  readonly #counts: number[];

  /** @param spans the number of spans. */
  constructor(spans: number) {
    this.#counts = Array.from({ length: spans }, () => 0);
  }

  add(queue: string, overdue: number, counts: readonly number[]): void {
    this.#queues.push({ queue, overdue, counts, total: sumOf(counts) });
    for (const [i, one] of counts.entries()) this.#counts[i] = (this.#counts[i] ?? 0) + one;
  }

  /** The counts of all queues in each span. */
  get counts(): readonly number[] {
    return this.#counts;
  }

  /** The counts of all queues in all spans. */
  get total(): number {
    return sumOf(this.#counts);
  }

  get overdue(): number {
    return sumOf(this.#queues.map(({ overdue }) => overdue));
  }

  /** The queues in which something is overdue or falls due, largest count first. */
  get queues(): QueueOutlook[] {
    return this.#queues
      .filter(({ overdue, total }) => overdue + total > 0)
      .toSorted((a, b) => b.overdue + b.total - (a.overdue + a.total));
  }

  /** The queues with the largest counts, and the sum of the others: `orders 5, mails 2, calls 2, 3 more 4`. */
  topOf(count: (queue: QueueOutlook) => number): string {
    const all = this.#queues
      .map((one) => ({ queue: one.queue, count: count(one) }))
      .filter((one) => one.count > 0)
      .toSorted((a, b) => b.count - a.count);
    const rest = all.slice(TOP);
    const words = all.slice(0, TOP).map((one) => `${one.queue} ${formatCount(one.count)}`);
    if (rest.length > 0) {
      words.push(
        `${formatCount(rest.length)} more ${formatCount(sumOf(rest.map((one) => one.count)))}`,
      );
    }
    return words.join(", ");
  }
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one, 0);
}

/** How many queues to name for each span. */
const TOP = 3;

/**
 * Prints how many messages are overdue, and how many fall due in each span. Leaves out empty spans, except the first
 * if `isAsked`: the user named its time. With several queues, names those with the largest counts in each span.
 */
async function printSpans(
  output: Output,
  outlook: Outlook,
  bounds: readonly number[],
  isAsked: boolean,
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
            formatInstant(bounds[i] ?? NaN),
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
async function printQueues(output: Output, outlook: Outlook): Promise<void> {
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
