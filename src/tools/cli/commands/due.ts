import type { InspectedQueue } from "../../inspect/inspector.ts";
import { parseCount } from "../parsing/count.ts";
import { parseDuration } from "../parsing/durations.ts";
import { parseInstant } from "../parsing/instants.ts";
import { UsageError } from "../parsing/usage-error.ts";
import { formatDuration, formatInstant } from "../printing/format-time.ts";
import { printQueues, printSpans } from "../printing/outlook-tables.ts";
import { Outlook } from "../printing/outlook.ts";
import { formatCount } from "../printing/table.ts";
import { defineCommand } from "../session/command.ts";
import { EXIT } from "../session/exit-code.ts";

export const due = defineCommand({
  usage: "due [queue] [--at <time>] [--step <duration>] [--count <count>]",
  help: `Counts the messages and retries that fall due in each of the coming hours, and those that
are overdue now. Counts all queues unless you name one, and shows which of them have most.
Leaves out spans in which nothing falls due, except the one at --at.
  delayline due --at tomorrow 09:00            from nine o'clock tomorrow
  delayline due orders --step 15m --count 96   one day, in quarter hours
Times are local; for another zone, begin the command with TZ=Europe/Berlin.
O(log N) per span.`,
  words: [0, 1],
  options: {
    at: { type: "string", value: "<time>" },
    step: { type: "string", value: "<duration>" },
    count: { type: "string", value: "<count>" },
  },
  optionHelp: {
    at: "starts the first span at this time: 09:00 (the next nine o'clock), tomorrow 09:00, monday 09:00, 2026-11-22T09:00, now or 2h (from now); defaults to the start of the current span: of the hour, with --step 1h",
    step: "makes each span this long; defaults to 1h",
    count: "counts this many spans, 1 to 1000; defaults to 24",
  },
  async run(session, [name], { at, step: length = "1h", count: number = "24" }) {
    const step = Math.round(parseDuration("--step", length));
    if (step < 1 || step > LONGEST) {
      throw new UsageError(`--step must be between 1ms and 3650d, got ${JSON.stringify(length)}`);
    }
    const count = parseCount("--count", number, 1, 1000);
    const startAt = (now: number) =>
      at === undefined ? startOfSpan(now, step) : parseInstant("--at", at, now);
    // Refuse an invalid time before connecting to Redis.
    startAt(Date.now());
    const { output, isJson, signal } = session;
    const inspector = await session.inspector();
    const from = startAt(Math.floor(await inspector.line.serverTime()));
    const outlook = new Outlook(count);
    const look = async (queue: InspectedQueue) => {
      const counts = await countComing(queue, { from, step, count, signal });
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
      await printSpans(output, outlook, { from, step, isAsked: at !== undefined });
      if (queues.length > 1) await printQueues(output, outlook);
      const until = formatInstant(from + count * step);
      output.say(
        `From ${formatInstant(from)} until ${until}, in spans of ${formatDuration(step)}: ${formatCount(total)}.`,
      );
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
  return midnight + Math.floor((now - midnight) / step) * step;
}

/** How many messages fall due in each span, without those that are overdue: these are counted apart. */
async function countComing(
  { messages, stats }: InspectedQueue,
  { from, step, count, signal }: { from: number; step: number; count: number; signal: AbortSignal },
): Promise<number[]> {
  const begin = Math.max(from, Math.floor(stats.serverTime) + 1);
  const past = Math.min(count, Math.floor((begin - from) / step));
  const counts = Array.from({ length: past }, () => 0);
  if (past === count) return counts;
  // The rest of a span that has already begun is counted apart.
  const next = begin === from ? from : from + (past + 1) * step;
  if (next > begin) {
    const rest = { from: begin, step: next - begin, count: 1, signal };
    counts.push(...(await messages.forecast(rest)).counts);
  }
  if (counts.length === count) return counts;
  const others = { from: next, step, count: count - counts.length, signal };
  return [...counts, ...(await messages.forecast(others)).counts];
}

/** The longest span, in milliseconds. A thousand of them after any date still end before the latest deadline. */
const LONGEST = 3650 * 86_400_000;
