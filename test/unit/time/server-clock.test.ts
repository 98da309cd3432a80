import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ServerClock } from "../../../src/time/server-clock.ts";

let clock: ServerClock;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout"] });
  clock = new ServerClock();
});

afterEach(() => {
  vi.useRealTimers();
});

/** The server's clock (epoch ms) when ours says 0. */
const SERVER = 1_760_000_000_000;

/** Lets so many milliseconds pass. */
const pass = (ms: number) => vi.advanceTimersByTime(ms);

/** A reply that took `there` ms to the server, whose clock is `ahead` ms ahead, and `back` ms back. */
function hear({ there, back, ahead = 0 }: { there: number; back: number; ahead?: number }): void {
  const sentAt = performance.now();
  pass(there);
  const serverTime = SERVER + performance.now() + ahead;
  pass(back);
  clock.observe(serverTime, sentAt);
}

const error = (ahead = 0) => clock.now() - (SERVER + performance.now() + ahead);

test("knows nothing until the server has been heard", () => {
  expect(clock.isSet).toBe(false);
  hear({ there: 1, back: 1 });
  expect(clock.isSet).toBe(true);
});

test("takes the midpoint of what a reply leaves possible", () => {
  hear({ there: 10, back: 10 });
  expect(error()).toBeCloseTo(0, 3);
});

test.each([
  { there: 100, back: 0 },
  { there: 0, back: 100 },
])("is wrong by no more than half of the round trip: %o", ({ there, back }) => {
  hear({ there, back });
  expect(Math.abs(error())).toBeLessThanOrEqual(50.001);
});

test("is corrected by a faster reply, and hardly affected by slower ones", () => {
  hear({ there: 100, back: 0 });
  hear({ there: 1, back: 1 });
  expect(Math.abs(error())).toBeLessThanOrEqual(1.001);
  hear({ there: 5_000, back: 5_000 });
  hear({ there: 20, back: 3_000 });
  // In 13 seconds two clocks may have drifted apart by a millisecond or so.
  expect(Math.abs(error())).toBeLessThanOrEqual(3);
});

test("learns more from two lopsided replies than from either", () => {
  hear({ there: 100, back: 1 });
  hear({ there: 1, back: 100 });
  expect(Math.abs(error())).toBeLessThanOrEqual(1.1);
});

test("follows a clock that goes wrong slowly", () => {
  for (let second = 0; second < 600; second++) {
    hear({ there: 1, back: 1, ahead: second * 0.05 });
    pass(998);
  }
  expect(Math.abs(error(600 * 0.05))).toBeLessThanOrEqual(2);
});

test("runs on between replies", () => {
  hear({ there: 1, back: 1 });
  const before = clock.now();
  pass(1_500);
  expect(clock.now() - before).toBeCloseTo(1500, 3);
});

test.each([3_600_000, -3_600_000])(
  "follows a step of the server's clock by %d ms at once",
  (ahead) => {
    hear({ there: 1, back: 1 });
    hear({ there: 2, back: 2, ahead });
    expect(Math.abs(error(ahead))).toBeLessThanOrEqual(4.001);
  },
);

test("reads the reply to TIME, seconds and microseconds, as strings or numbers", async () => {
  for (const convert of [String, Number]) {
    const asked = new ServerClock();
    await asked.ready(async () => {
      const now = SERVER + performance.now();
      return ServerClock.fromTime([convert(Math.floor(now / 1000)), convert((now % 1000) * 1000)]);
    });
    expect(asked.now() - (SERVER + performance.now())).toBeCloseTo(0, 3);
  }
});

test("asks once for all callers, and not again once the clock is set", async () => {
  let asked = 0;
  const time = async () => {
    asked++;
    return 1_760_000_000_000;
  };
  await Promise.all([clock.ready(time), clock.ready(time), clock.ready(time)]);
  const before = asked;
  expect(before).toBeLessThanOrEqual(2);
  await clock.ready(time);
  expect(asked).toBe(before);
});

test("lets callers continue in the order in which they came, the last one included", async () => {
  const order: number[] = [];
  const wait = async (i: number) => {
    const asking = clock.ready(async () => 1_760_000_000_000 + i / 1000);
    if (asking !== undefined) await asking;
    order.push(i);
  };
  const waits = [wait(0), wait(1)];
  // While the clock is being asked, a caller arrives in every turn.
  for (let i = 2; i < 12; i++) {
    await Promise.resolve();
    waits.push(wait(i));
  }
  await Promise.all(waits);
  expect(order).toEqual(Array.from({ length: 12 }, (_, i) => i));
});

test("does not ask if another reply told the time", async () => {
  hear({ there: 1, back: 1 });
  await clock.ready(() => expect.unreachable("there is no need to ask"));
});

test("a lost reply changes nothing, and the next waiter asks again", async () => {
  await expect(clock.ready(() => Promise.reject(new Error("lost")))).rejects.toThrow("lost");
  expect(clock.isSet).toBe(false);
  await clock.ready(async () => 1_760_000_000_000);
  expect(clock.isSet).toBe(true);
});

test("returns how long it is until a deadline on the server's clock", () => {
  hear({ there: 1, back: 1 });
  const deadline = SERVER + performance.now() + 250;
  expect(clock.remaining(deadline)).toBeCloseTo(250, 1);
  pass(300);
  expect(clock.remaining(deadline)).toBeCloseTo(-50, 1);
});

describe("order stamps", () => {
  test("are the server's time in whole microseconds", () => {
    hear({ there: 1, back: 1 });
    const stamp = clock.nextStamp();
    expect(Number.isSafeInteger(stamp)).toBe(true);
    expect(stamp).toBe(Math.floor(clock.now() * 1000));
  });

  test("increase strictly, though no time passes", () => {
    hear({ there: 1, back: 1 });
    const stamps = Array.from({ length: 1_000 }, () => clock.nextStamp());
    for (const [i, stamp] of stamps.entries()) {
      if (i > 0) expect(stamp).toBeGreaterThan(stamps[i - 1] as number);
    }
  });

  test("increase strictly, though the server's clock goes back", () => {
    hear({ there: 1, back: 1 });
    const before = clock.nextStamp();
    hear({ there: 1, back: 1, ahead: -60_000 });
    expect(clock.nextStamp()).toBe(before + 1);
    expect(clock.nextStamp()).toBe(before + 2);
  });
});

test("tells what the clock would show if nobody had set it lately", () => {
  expect(clock.past).toBeUndefined();
  hear({ there: 1, back: 9 });
  pass(2_490);
  expect(clock.past).toBeUndefined();
  pass(10);
  const wrong = (ahead = 0) => (clock.past ?? NaN) - (SERVER + performance.now() + ahead);
  // Never more: the reply took 9 ms.
  expect(wrong()).toBeCloseTo(-9, 0);
  const HOUR = 3_600_000;
  for (let i = 0; i < 24; i++) {
    hear({ there: 1, back: 1, ahead: HOUR });
    expect(wrong()).toBeCloseTo(-9, 0);
    pass(98);
  }
  pass(2_500);
  expect(wrong(HOUR)).toBeCloseTo(-1, 0);
});
