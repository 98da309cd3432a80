import type { InspectedQueue } from "../../inspect/inspector.ts";
import type { Forecast } from "../../queue/queue-handle.ts";
import { defineCommand } from "../command.ts";
import { formatDuration, formatInstant, parseDuration, parseInstant } from "../durations.ts";
import { EXIT } from "../exit-code.ts";
import { parseCount } from "../parse-count.ts";
import { formatCount } from "../table.ts";

export const due = defineCommand({
  usage: "due [queue] [--at <date>] [--step <duration>] [--count <count>]",
  help: `How many messages and retries fall due when, from now on or from a date on; without a
queue, of all queues together. Spans in which nothing falls due are left out.
O(log N) for each span.`,
  words: [0, 1],
  options: { at: { type: "string" }, step: { type: "string" }, count: { type: "string" } },
  optionHelp: {
    at: "where the first span begins, such as 2026-11-22T09:00; defaults to now",
    step: "how long each span is; defaults to 15m",
    count: "how many spans, 1 to 1000; defaults to 96",
  },
  async run(session, [name], { at, step: length = "15m", count: number = "96" }) {
    const step = Math.round(parseDuration("--step", length));
    const count = parseCount("--count", number, 1, 1000);
    const { output, isJson, signal } = session;
    const inspector = await session.inspector();
    const from =
      at === undefined ? Math.floor(await inspector.line.serverTime()) : parseInstant("--at", at);
    const forecasts: Forecast[] = [];
    const look = async ({ messages }: InspectedQueue) => {
      forecasts.push(await messages.forecast({ from, step, count, signal }));
    };
    let refused = 0;
    if (name === undefined) ({ refused } = await session.eachQueue(look));
    else await look(await session.open(name));
    const counts = Array.from({ length: count }, (_, i) =>
      forecasts.reduce((sum, one) => sum + (one.counts[i] ?? 0), 0),
    );
    const total = counts.reduce((sum, one) => sum + one, 0);
    if (isJson) {
      await output.json({ queue: name, from, step, counts, total });
      if (refused > 0) return EXIT.redis;
      return total > 0 ? EXIT.done : EXIT.nothing;
    }
    const most = Math.max(...counts);
    const rows = counts.flatMap((one, i) =>
      one === 0 ? [] : [[formatInstant(from + i * step), formatCount(one), barOf(one / most)]],
    );
    const columns = [{ title: "FROM" }, { title: "DUE", align: "right" as const }, { title: "" }];
    if (rows.length > 0) await output.table(columns, rows);
    const until = formatInstant(from + count * step);
    output.say(
      `${formatCount(total)} fall due until ${until}, in spans of ${formatDuration(step)}.`,
    );
    if (refused > 0) return EXIT.redis;
    return total > 0 ? EXIT.done : EXIT.nothing;
  },
});

/** 36 characters at most, and one at least. */
function barOf(share: number): string {
  return "#".repeat(Math.max(1, Math.round(share * 36)));
}
