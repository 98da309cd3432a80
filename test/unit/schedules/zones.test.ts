import { expect, test } from "vitest";
import { cronCalendar, type Calendar } from "../../../src/schedules/calendar.ts";

/*
 * Every time zone that the runtime knows, 2026 to 2030, against the offsets that Intl shows. A tick of cron costs some
 * 0.2 ms, and zones times hours are 18 million. So zones that set their clocks at the same instants by the same amounts
 * are one case, and cron is asked around each change, and in between once a month: there each day is like the one before.
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

test("daily: each local day once, at the first 02:30, or when clocks have been set over it", async () => {
  for (const { zone, first, changes } of cases.values()) {
    const daily = await cronCalendar("30 2 * * *", zone);
    for (const at of momentsOf(changes)) {
      const offsetAt = offsetIn(first, changes);
      const midnight = Math.floor((at - DAY + offsetAt(at - DAY)) / DAY) * DAY;
      const from = Math.min(...candidates(midnight, offsetAt));
      const expected = Array.from({ length: 4 }, (_, day) => {
        const local = midnight + day * DAY + 2.5 * HOUR;
        const shown = candidates(local, offsetAt).filter((one) => one + offsetAt(one) === local);
        const [earliest = skipping(local, changes)] = shown.toSorted((a, b) => a - b);
        return earliest;
      });
      const ticks = ticksOf(daily, from, 4);
      expect(ticks.map(asText), `${zone} ${asText(at)}`).toEqual(expected.map(asText));
    }
  }
});

test("hourly: each full hour that clocks show once, both of a double hour", async () => {
  for (const { zone, first, changes } of cases.values()) {
    const hourly = await cronCalendar("0 * * * *", zone);
    for (const at of momentsOf(changes)) {
      const offsetAt = offsetIn(first, changes);
      const expected: number[] = [];
      for (let minute = at - 4 * HOUR; expected.length < 8; minute += 60_000) {
        if ((minute + offsetAt(minute)) % HOUR === 0) expected.push(minute);
      }
      const ticks = ticksOf(hourly, at - 4 * HOUR, 8);
      expect(ticks.map(asText), `${zone} ${asText(at)}`).toEqual(expected.map(asText));
    }
  }
});

/** Each change, and an instant in each quarter. */
function momentsOf(changes: readonly Change[]): number[] {
  const moments = changes.map(({ at }) => at);
  for (let at = FROM + 40 * DAY; at < TO - 5 * DAY; at += 91 * DAY) moments.push(at);
  return moments.filter((at) => at > FROM + 5 * DAY && at < TO - 5 * DAY);
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

function ticksOf(calendar: Calendar, from: number, count: number): number[] {
  const ticks: number[] = [];
  for (let tick = from - 1; ticks.length < count;) {
    tick = calendar.next(new Date(tick))?.getTime() ?? NaN;
    ticks.push(tick);
  }
  return ticks;
}

function asText(at: number): string {
  return new Date(at).toISOString();
}
