import { expect, test } from "vitest";
import { everyCalendar, type ScheduleCalendar } from "../../../src/schedules/calendar.ts";
import { advance, declare, pause, resume, type Plan } from "../../../src/schedules/plan.ts";
import { formatRecord, parseRecord, type ScheduleRecord } from "../../../src/schedules/record.ts";
import type { Rule } from "../../../src/schedules/rule.ts";
import { Ticks } from "../../../src/schedules/ticks.ts";

const NOW = Date.UTC(2026, 5, 1);
const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];

function ruleOf(own: Partial<Rule>): Rule {
  const common = {
    timeZone: "UTC",
    misfireGrace: 5000,
    maxCatchUp: 1000,
    overlap: "allow",
  } as const;
  return { ...common, misfire: "once", ...own };
}

/** Plans one schedule at chosen instants. */
class Scheduling {
  readonly rule: Rule;
  readonly ticks: Ticks;
  record: ScheduleRecord;

  constructor(own: Partial<Rule>, now = NOW, calendar?: ScheduleCalendar) {
    this.rule = ruleOf(own);
    this.ticks = new Ticks("s", this.rule, calendar ?? everyCalendar(own.every ?? 0, own.phase));
    const declaration = {
      rule: this.rule,
      payload: Buffer.from("p"),
      hasCalendar: false,
      version: 0,
    };
    this.record = this.take(declare(undefined, declaration, this.#recipe, now)).record;
  }

  get #recipe() {
    return { ticks: this.ticks, payloadOf: () => Buffer.from("p") };
  }

  advance(now: number): Plan {
    return this.take(advance(this.record, this.#recipe, now));
  }

  take(plan: Plan): Plan {
    this.record = plan.record;
    return plan;
  }
}

const ticksOf = ({ puts }: Plan) => puts.map(({ tick }) => tick);

test("ticks of every are counted from the epoch, so they do not drift with the start of a process", () => {
  const { record } = new Scheduling({ every: 7 * SECOND, phase: 2 * SECOND }, NOW + 1234);
  for (const { tick } of record.planned) expect(tick % (7 * SECOND)).toBe(2 * SECOND);
  expect(record.planned[0]?.tick).toBeGreaterThan(NOW + 1234);
});

test("places 30 s ahead, two ticks at least and a hundred at most; and is planned half-way", () => {
  const second = new Scheduling({ every: SECOND }).record;
  expect(second.planned).toHaveLength(30);
  expect(second.planAt).toBe(NOW + 15 * SECOND);
  const daily = new Scheduling({ every: DAY }, NOW + 1).record;
  expect(daily.planned.map(({ tick }) => tick)).toEqual([NOW + DAY, NOW + 2 * DAY]);
  expect(daily.planAt).toBe(NOW + DAY + 1);
  const fast = new Scheduling({ every: 100 }).record;
  expect(fast.planned).toHaveLength(100);
  expect(fast.planAt).toBe(NOW + 5 * SECOND);
});

test("what begins between a tick and its message, which jitter has made later, places it", () => {
  const [now, next] = [NOW + 1, NOW + MINUTE];
  const scheduling = new Scheduling({ every: MINUTE, jitter: 30 * SECOND }, now);
  const deadline = scheduling.ticks.deadlineOf(NOW, next);
  expect(deadline).toBeGreaterThan(now);
  expect(scheduling.record.planned[0]).toEqual({ tick: NOW, deadline });
  const resumed = resume(scheduling.take(pause(scheduling.record, now)).record, now);
  scheduling.take(resumed);
  expect(ticksOf(scheduling.advance(now))[0]).toBe(NOW);
});

test("however it is planned, each tick is planned once, in order", () => {
  const scheduling = new Scheduling({ every: SECOND, misfire: "all" });
  const planned = scheduling.record.planned.map(({ tick }) => tick);
  let now = NOW;
  for (let i = 0; i < 200; i++) {
    now += (i * 7919) % 45_000;
    for (let plan = scheduling.advance(now); ; plan = scheduling.advance(now)) {
      planned.push(...ticksOf(plan));
      if (plan.record.planAt > now) break;
    }
  }
  expect(planned).toEqual(planned.map((_, i) => NOW + (i + 1) * SECOND));
  expect(scheduling.record.count).toBe(planned.length);
});

test("a server's clock that is set back places nothing twice", () => {
  const scheduling = new Scheduling({ every: SECOND });
  expect(scheduling.advance(NOW - 10 * MINUTE).puts).toEqual([]);
  expect(scheduling.advance(NOW + 15 * SECOND).puts).toHaveLength(15);
});

test("a server's clock that is set forward is a misfire", () => {
  const scheduling = new Scheduling({ every: MINUTE });
  const plan = scheduling.advance(NOW + DAY + 1);
  expect(ticksOf(plan)).toEqual([NOW + DAY, NOW + DAY + MINUTE, NOW + DAY + 2 * MINUTE]);
});

test("once: each message may come until the next is due, so that an outage leaves one", () => {
  const { puts } = new Scheduling({ every: MINUTE, jitter: 30_000 }).advance(NOW + 10 * MINUTE);
  const ends = puts.map(({ deadline, deliverWithin = NaN }) => deadline + deliverWithin + 1);
  expect(ends.slice(0, -1)).toEqual(puts.slice(1).map(({ deadline }) => deadline));
});

test("an outage of years is bridged in few steps, also by a calendar that only knows the next tick", () => {
  let asked = 0;
  const minutes = everyCalendar(MINUTE);
  const calendar = { next: (from: Date) => (asked++, minutes.next(from)) };
  const scheduling = new Scheduling({}, NOW, calendar);
  asked = 0;
  const late = NOW + 3 * 365 * DAY + 1;
  const plan = scheduling.advance(late);
  expect(plan.puts[0]?.tick).toBe(NOW + 3 * 365 * DAY);
  expect(plan.record.missed).toBe(99);
  expect(asked).toBeLessThan(250);
});

test("jitter delays each tick, by no more than it says, and never past the next one", () => {
  const scheduling = new Scheduling({ every: SECOND, jitter: 999, misfire: "all" });
  const { planned } = scheduling.record;
  const delays = planned.map(({ tick, deadline }) => deadline - tick);
  expect(new Set(delays).size).toBeGreaterThan(20);
  expect(Math.max(...delays)).toBeLessThan(1000);
  const deadlines = planned.map(({ deadline }) => deadline);
  expect(deadlines).toEqual(deadlines.toSorted((a, b) => a - b));
  expect(new Scheduling({ every: SECOND, jitter: 999 }).record.planned).toEqual(planned);
});

test("spread delays all ticks of a name alike", () => {
  const { planned } = new Scheduling({ every: MINUTE, spread: 50_000 }).record;
  const delays = new Set(planned.map(({ tick, deadline }) => deadline - tick));
  expect(delays.size).toBe(1);
  expect([...delays][0]).toBeGreaterThan(0);
});

test("days and spans are left out, in the time zone", () => {
  const except = ["2026-06-02", { from: NOW + 3 * DAY, to: NOW + 4 * DAY }] as const;
  const rule = ruleOf({ every: DAY / 2, except, timeZone: "Asia/Tokyo" });
  const ticks = new Ticks("s", rule, everyCalendar(DAY / 2));
  const found: string[] = [];
  for (let tick = ticks.next(NOW - 1); tick !== undefined && tick < NOW + 5 * DAY;) {
    found.push(new Date(tick).toISOString().slice(5, 13));
    tick = ticks.next(tick);
  }
  // 2 June in Tokyo begins at 15:00 UTC on the first.
  expect(found).toEqual(["06-01T00", "06-01T12", "06-03T00", "06-03T12", "06-05T00", "06-05T12"]);
});

test("a day that is left out ends where clocks are set back across its end", () => {
  // At 00:01 on 1 November clocks showed 23:01 on 31 October again.
  const rule = ruleOf({ every: MINUTE, timeZone: "America/St_Johns", except: ["2009-10-31"] });
  let asked = 0;
  const everyMinute = everyCalendar(MINUTE);
  const counting: ScheduleCalendar = {
    next: (from) => {
      if (++asked > 10_000) throw new Error("it is asked for ever");
      return everyMinute.next(from);
    },
  };
  const midnight = Date.UTC(2009, 10, 1, 2, 30);
  const again = Date.UTC(2009, 10, 1, 3, 30);
  const ticks = new Ticks("s", rule, counting);
  expect(ticks.next(midnight - HOUR)).toBe(midnight);
  expect(ticks.next(midnight)).toBe(again);
});

test("another declaration keeps what was due, and places no tick that was", () => {
  const scheduling = new Scheduling({ every: 10 * SECOND });
  const now = NOW + 25 * SECOND;
  const declared = {
    rule: ruleOf({ every: 5 * SECOND }),
    payload: Buffer.from("q"),
    hasCalendar: false,
    version: 0,
  };
  const ticks = new Ticks("s", declared.rule, everyCalendar(5 * SECOND));
  const plan = declare(
    scheduling.record,
    declared,
    { ticks, payloadOf: () => Buffer.from("q") },
    now,
  );
  expect(plan.withdrawn.map(({ tick }) => tick)).toEqual([NOW + 30 * SECOND]);
  expect(ticksOf(plan)[0]).toBe(NOW + 30 * SECOND);
  expect(plan.record.generation).not.toBe(scheduling.record.generation);
  expect(plan.record.count).toBe(3 - 1 + plan.puts.length);
});

test("a pause withdraws all; a resumed schedule begins with the next tick, whoever plans", () => {
  const scheduling = new Scheduling({ every: 10 * SECOND, misfire: "all" });
  const paused = scheduling.take(pause(scheduling.record, NOW + 15 * SECOND));
  expect(paused.withdrawn).toHaveLength(3);
  expect(paused.record).toMatchObject({ count: 1, planAt: Infinity, planned: [] });
  scheduling.take(resume(scheduling.record, NOW + DAY + 1));
  expect(scheduling.record.planAt).toBe(NOW + DAY + 1);
  // The planner comes a little later.
  const plan = scheduling.advance(NOW + DAY + 11 * SECOND);
  expect(ticksOf(plan)[0]).toBe(NOW + DAY + 10 * SECOND);
  expect(plan.record.missed).toBe(0);
});

test("a record is read as it was written, and bytes that are none are not", () => {
  const { record } = new Scheduling({
    every: SECOND,
    jitter: 500,
    limit: 5,
    except: ["2026-12-25"],
  });
  const bytes = formatRecord({ ...record, payload: Buffer.from([10, 0, 255]) });
  const { revision, ...found } = parseRecord(bytes) ?? { revision: "" };
  expect(revision).toMatch(/^[0-9a-f]{16}$/);
  expect(found).toEqual({ ...record, payload: Buffer.from([10, 0, 255]) });
  expect(parseRecord(formatRecord(record))?.revision).not.toBe(revision);
  const daily = formatRecord(new Scheduling({ every: DAY }).record);
  expect(daily.length).toBeLessThan(450);
  for (let cut = 0; cut < bytes.length - 3; cut += 7)
    expect(parseRecord(bytes.subarray(0, cut))).toBeUndefined();
  for (const text of [
    "",
    "x",
    "0123456789abcdef|{}\n",
    "0123456789abcdef|null\n",
    "0123456789abcdef|[1]\n",
  ])
    expect(parseRecord(Buffer.from(text))).toBeUndefined();
});
