import { expect, test } from "vitest";
import { cronCalendar, type ScheduleCalendar } from "../../../src/schedules/calendar.ts";

/*
 * Every time zone that the runtime knows, 2026 to 2030, against the offsets that Intl shows. A tick of cron costs some
 * 0.2 ms, and zones times hours are 18 million. So zones that set their clocks at the same instants by the same amounts
 * are one case, and cron is asked around each change, and once in between: there each day is like the one before.
 */

const [HOUR, DAY] = [3_600_000, 86_400_000];
const [FROM, TO] = [Date.UTC(2026, 0, 1), Date.UTC(2031, 0, 1)];

/** When a zone's clocks are set, and the offsets to UTC before and after (ms). */
interface Change {
  readonly at: number;
  readonly before: number;
  readonly after: number;
}

/** The offset that Intl shows, from its text `GMT+5:30`: independent of the library's zones. */
function offsets(zone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  return (at) => {
    const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(format.format(at)) ?? [];
    const offset = Number(hours ?? 0) * HOUR + Number(minutes ?? 0) * 60_000;
    return sign === "-" ? -offset : offset;
  };
}

function changesOf(offsetAt: (at: number) => number): Change[] {
  const changes: Change[] = [];
  for (let day = FROM; day < TO; day += 7 * DAY) {
    let [low, high] = [day, Math.min(day + 7 * DAY, TO)];
    const [before, after] = [offsetAt(low), offsetAt(high)];
    if (before === after) continue;
    while (high - low > 1000) {
      const middle = low + Math.floor((high - low) / 2000) * 1000;
      if (offsetAt(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ at: high, before, after });
  }
  return changes;
}

const cases = new Map<string, { zone: string; first: number; changes: Change[] }>();
for (const zone of Intl.supportedValuesOf("timeZone")) {
  const offsetAt = offsets(zone);
  const changes = changesOf(offsetAt);
  const first = offsetAt(FROM);
  const shown = JSON.stringify([first, changes]);
  if (!cases.has(shown)) cases.set(shown, { zone, first, changes });
}

test("the zones of the runtime fall into cases", () => {
  expect(cases.size).toBeGreaterThan(30);
  expect([...cases.values()].flatMap(({ changes }) => changes).length).toBeGreaterThan(100);
});

/** Patterns of fixed times, and their times of the day (ms). */
const FIXED: readonly (readonly [pattern: string, times: readonly number[]])[] = [
  ["30 2 * * *", [2.5 * HOUR]],
  ["0 0 * * *", [0]],
  ["30 23 * * *", [23.5 * HOUR]],
  ["0 2,14 * * *", [2 * HOUR, 14 * HOUR]],
  [
    "0,30 22,23,0-3 * * *",
    [0, 1, 2, 3, 22, 23].flatMap((hour) => [timeOf(hour, 0), timeOf(hour, 30)]),
  ],
  ["0-59/20 0-4/2 * * *", [0, 2, 4].flatMap((hour) => [0, 20, 40].map((m) => timeOf(hour, m)))],
  [
    "0,59 15,45 1,2 * * *",
    [1, 2].flatMap((h) => [15, 45].flatMap((m) => [timeOf(h, m), timeOf(h, m, 59)])),
  ],
];

test.each(FIXED)(
  "%s: each local day's times once, first or when clocks have been set over them",
  async (pattern, times) => {
    for (const { zone, first, changes } of cases.values()) {
      const calendar = await cronCalendar(pattern, zone);
      const offsetAt = offsetIn(first, changes);
      for (const moment of momentsOf(changes, times.length > 2 ? 4 : 10)) {
        const [from, to] = [moment - DAY, moment + DAY];
        const expected = new Set<number>();
        for (let day = Math.floor(from / DAY) - 2; day * DAY < to + 2 * DAY; day++) {
          for (const time of times) {
            const local = day * DAY + time;
            const shown = candidates(local, offsetAt).filter(
              (one) => one + offsetAt(one) === local,
            );
            expected.add(shown.toSorted((a, b) => a - b)[0] ?? skipping(local, changes));
          }
        }
        const within = [...expected].filter((one) => from <= one && one < to);
        const ticks = ticksOf(calendar, from, to);
        expect(ticks.map(asText), `${zone} ${asText(moment)}`).toEqual(
          within.toSorted((a, b) => a - b).map(asText),
        );
      }
    }
  },
);

/** Patterns of intervals, and the minutes of a local day at which they come. */
const INTERVALS: readonly (readonly [pattern: string, comes: (minute: number) => boolean])[] = [
  ["0 * * * *", (minute) => minute % 60 === 0],
  ["*/20 1-3,23 * * *", (minute) => minute % 20 === 0 && [1, 2, 3, 23].includes((minute / 60) | 0)],
];

test.each(INTERVALS)(
  "%s: each time that clocks show it, both of a double hour",
  async (pattern, comes) => {
    for (const { zone, first, changes } of cases.values()) {
      const calendar = await cronCalendar(pattern, zone);
      const offsetAt = offsetIn(first, changes);
      for (const moment of momentsOf(changes, 4)) {
        const [from, to] = [moment - 4 * HOUR, moment + 4 * HOUR];
        const expected: number[] = [];
        for (let minute = from; minute < to; minute += 60_000) {
          if (comes(((minute + offsetAt(minute)) % DAY) / 60_000)) expected.push(minute);
        }
        const ticks = ticksOf(calendar, from, to);
        expect(ticks.map(asText), `${zone} ${asText(moment)}`).toEqual(expected.map(asText));
      }
    }
  },
);

test("where clocks skip midnight or a whole day, and for a yearly time", async () => {
  // Nuuk goes from 23:00 to 00:00; Apia had no 30 December 2011.
  const nuuk = await cronCalendar("30 23 27 3 *", "America/Nuuk");
  expect(ticksOf(nuuk, Date.UTC(2027, 0), Date.UTC(2029, 0)).map(asText)).toEqual([
    "2027-03-28T01:00:00.000Z",
    "2028-03-28T00:30:00.000Z",
  ]);
  const apia = await cronCalendar("0 9,17 * * *", "Pacific/Apia");
  expect(ticksOf(apia, Date.UTC(2011, 11, 30), Date.UTC(2011, 11, 31)).map(asText)).toEqual([
    "2011-12-30T03:00:00.000Z",
    "2011-12-30T10:00:00.000Z",
    "2011-12-30T19:00:00.000Z",
  ]);
});

/** The first changes of a zone, and an instant without one. */
function momentsOf(changes: readonly Change[], count: number): number[] {
  const within = changes
    .map(({ at }) => at)
    .filter((at) => at > FROM + 5 * DAY && at < TO - 5 * DAY);
  return [FROM + 40 * DAY, ...within.slice(0, count)];
}

function offsetIn(first: number, changes: readonly Change[]): (at: number) => number {
  return (at) => changes.findLast((change) => change.at <= at)?.after ?? first;
}

/** The instants that may show a local time. */
function candidates(local: number, offsetAt: (at: number) => number): number[] {
  return [...new Set([offsetAt(local - DAY), offsetAt(local + DAY)])].map((one) => local - one);
}

/** When clocks are set over a local time. */
function skipping(local: number, changes: readonly Change[]): number {
  return changes.find(({ at, before, after }) => at + before <= local && local < at + after)!.at;
}

/** The ticks of a span. */
function ticksOf(calendar: ScheduleCalendar, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (let tick = from - 1; ;) {
    tick = calendar.next(new Date(tick))?.getTime() ?? NaN;
    if (!(tick < to)) return ticks;
    ticks.push(tick);
  }
}

/** A time of the day (ms). */
function timeOf(hour: number, minute: number, second = 0): number {
  return hour * HOUR + minute * 60_000 + second * 1000;
}

function asText(at: number): string {
  return new Date(at).toISOString();
}
