import { mock } from "node:test";
import { EventEmitter, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  testClock,
  type FakeTimers,
  type TestClockOptions,
} from "../../../src/adapters/testing/index.ts";
import type { DelayedQueue } from "../../../src/index.ts";
import { currentRuntime } from "../../../src/time/runtime.ts";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

// What the clock refuses, and how it gets on with other clocks of a test.

const EIGHT = "2026-03-28T08:00:00.000Z";

test("one at a time, and the next after it has closed", async () => {
  const clock = await newClock();
  await expect(testClock()).rejects.toThrow("close the other clock first");
  await clock.close();
  const next = await newClock();
  await next.advance(1);
  await expect(clock.advance(1)).rejects.toThrow("the test clock is closed");
});

test("forward only", async () => {
  const clock = await newClock({ now: EIGHT });
  await clock.advanceTo("2026-03-28T09:00:00Z");
  await clock.advanceTo("2026-03-28T09:00:00Z");
  await expect(clock.advanceTo(EIGHT)).rejects.toThrow(
    "advanceTo must not go back: it is 2026-03-28T09:00:00.000Z, got 2026-03-28T08:00:00.000Z",
  );
  expect(clock.now.toISOString()).toBe("2026-03-28T09:00:00.000Z");
});

test.each([
  ["3 days", 3 * DAY],
  ["2 min", 2 * MINUTE],
  ["1h 30m", 90 * MINUTE],
  ["1h30m", 90 * MINUTE],
  ["1.5 seconds", 1500],
  ["1 Day 12 Hours", 36 * HOUR],
  ["250ms", 250],
  ["2 weeks", 14 * DAY],
  ["1w 1d", 8 * DAY],
  [0, 0],
  [1500.4, 1500],
])("advance(%j)", async (duration, passed) => {
  const clock = await newClock({ now: EIGHT });
  await clock.advance(duration);
  expect(clock.now.getTime() - Date.parse(EIGHT)).toBe(passed);
});

test.each([
  ["3 months", TypeError],
  ["soon", TypeError],
  ["", TypeError],
  ["-1 day", TypeError],
  ["3", TypeError],
  [NaN, TypeError],
  [undefined, TypeError],
  [new Date(0), TypeError],
  [-1, RangeError],
  [Infinity, RangeError],
])("advance(%j) is refused, and says what is legal", async (duration, error) => {
  const clock = await newClock({ now: EIGHT });
  const call = clock.advance(duration as string);
  await expect(call).rejects.toThrow(error);
  await expect(call).rejects.toThrow("advance must be given");
  await expect(clock.sleep(duration as string)).rejects.toThrow("sleep must be given");
  expect(clock.now.toISOString()).toBe(EIGHT);
});

test.each([
  [{ now: "yesterday" }, "now must be a Date, text that Date reads, or epoch milliseconds"],
  [{ now: NaN }, "now must be"],
  [{ nwo: 1 }, 'testClock option must be one of now, date, timers, patience, got "nwo"'],
  [{ date: "yes" }, "date must be a boolean"],
  [{ timers: {} }, "timers must have one of the methods"],
  [{ patience: 0 }, "patience must be a number above 0, got 0"],
  [null, "options must be an object, got null"],
])("testClock(%j) is refused, and time stays real", async (options, message) => {
  await expect(testClock(options as TestClockOptions)).rejects.toThrow(message);
  await (await newClock()).close();
});

test("it cannot be switched on in production", async () => {
  vi.stubEnv("NODE_ENV", "production");
  onTestFinished(() => void vi.unstubAllEnvs());
  await expect(testClock()).rejects.toThrow("must not be used in production");
});

test("a handler that never ends is named", async () => {
  const clock = await newClock({ patience: 300 });
  const line = newLine();
  const name = uniqueName("stuck");
  const stuck = new EventEmitter();
  line.getBlockingQueue<string>(name).subscribe(() => once(stuck, "end"));
  await line.getDelayedQueue<string>(name).offer("message", SECOND);
  await expect(clock.advance("1 min")).rejects.toThrow(
    new RegExp(`waits in vain for a handler of queue "${name}", which has run for \\d+\\.\\d s`),
  );
  stuck.emit("end");
  await clock.advance("1 min");
});

test.each(["plain", "reliable"])(
  "in a %s queue it is named before a test runner gives up",
  async (kind) => {
    const clock = await newClock();
    const line = newLine();
    const name = uniqueName("stuck");
    const stuck = new EventEmitter();
    const begun = new Promise<number>((resolve) => {
      const handler = async () => {
        resolve(performance.now());
        await once(stuck, "end");
      };
      if (kind === "plain") line.getBlockingQueue(name).subscribe(handler);
      else line.getReliableQueue(name).subscribe(handler);
    });
    await line.getDelayedQueue(name).offer("message", SECOND);
    await expect(clock.advance("1 min")).rejects.toThrow(
      `waits in vain for a handler of queue "${name}"`,
    );
    expect(performance.now() - (await begun)).toBeLessThan(4500);
    stuck.emit("end");
    await clock.settled();
  },
);

test("handlers are waited for in real time", async () => {
  const clock = await newClock();
  const line = newLine();
  const name = uniqueName("slow");
  const seen: string[] = [];
  const { promises } = await import("node:timers");
  line.getBlockingQueue<string>(name).subscribe(async (text) => {
    await promises.setTimeout(50);
    seen.push(text);
  });
  const queue = line.getDelayedQueue<string>(name);
  for (const text of ["a", "b", "c"]) await queue.offer(text, SECOND);
  await clock.advance(SECOND);
  expect(seen).toEqual(["a", "b", "c"]);
});

test("what a queue loads is waited for in real time", async () => {
  vi.doMock("croner", async (importOriginal) => {
    await sleep(100);
    return await importOriginal();
  });
  onTestFinished(() => {
    vi.doUnmock("croner");
  });
  const clock = await newClock({ now: "2026-01-01T00:00:00Z" });
  const { schedules } = newLine().getReliableQueue<string>(uniqueName());
  const result = schedules.upsert("daily", { cron: "0 9 * * *", payload: "run" });
  await clock.advance("3 days");
  expect((await result).next[0]).toBe(Date.parse("2026-01-01T09:00Z"));
  expect(await schedules.get("daily")).toMatchObject({ count: 5, missed: 0 });
});

test("time is let pass by one call at a time, and never by a handler", async () => {
  const clock = await newClock();
  const line = newLine();
  const name = uniqueName("inside");
  const errors: unknown[] = [];
  line.getBlockingQueue<string>(name).subscribe(async () => {
    await clock.advance(1).catch((error: unknown) => errors.push(error));
  });
  await line.getDelayedQueue<string>(name).offer("message", SECOND);
  const first = clock.advance(SECOND);
  await expect(clock.advance(1)).rejects.toThrow("must not be called while advance lets time pass");
  await first;
  expect(String(errors[0])).toContain(
    "advance must not be called by a handler, for which it waits: use sleep",
  );
});

test("sleep ends with its signal, and with the clock", async () => {
  const clock = await newClock();
  const aborting = new AbortController();
  const [first, second, third] = [
    clock.sleep("1 hour", { signal: aborting.signal }),
    clock.sleep("2 hours"),
    clock.sleep("3 hours"),
  ];
  aborting.abort();
  await first;
  await clock.advance("2 hours");
  await second;
  await clock.close();
  await third;
});

test("date: Date follows the clock, and is real afterwards", async () => {
  const real = Date;
  const clock = await newClock({ now: EIGHT, date: true });
  const line = newLine();
  const name = uniqueName("date");
  const seen: string[] = [];
  line.getBlockingQueue<string>(name).subscribe(() => void seen.push(new Date().toISOString()));
  await line.getDelayedQueue<string>(name).offerAt("at noon", new Date(Date.now() + 4 * HOUR));
  await clock.advance("1 day");
  expect(seen).toEqual(["2026-03-28T12:00:00.000Z"]);
  expect(Date.now()).toBe(clock.now.getTime());
  expect(new Date()).toBeInstanceOf(real);
  expect(new Date(2026, 0, 1).getTime()).toBe(new real(2026, 0, 1).getTime());
  expect(Date()).toBe(clock.now.toString());
  await line.close();
  await clock.close();
  expect(Date).toBe(real);
  expect(Math.abs(Date.now() - (performance.timeOrigin + performance.now()))).toBeLessThan(MINUTE);
});

test("Vitest's fake timers do not disturb it", async () => {
  vi.useFakeTimers({ now: Date.parse(EIGHT) });
  onTestFinished(() => void vi.useRealTimers());
  const clock = await newClock();
  const line = newLine();
  const queue = line.getReliableQueue<string>(uniqueName("vitest"), { retry: [HOUR] });
  const seen: number[] = [];
  queue.subscribe(
    (_, { attempt }) => {
      seen.push(clock.now.getTime() - Date.parse(EIGHT));
      if (attempt === 1) throw new Error("again");
    },
    { onError: () => {} },
  );
  await queue.offer("message", MINUTE);
  await clock.advance("2 hours");
  expect(seen).toEqual([MINUTE, MINUTE + HOUR]);
  await line.close();
});

test("timers: those of node:test follow, and a handler's own timeout passes", async () => {
  mock.timers.enable({ apis: ["setTimeout", "Date"] });
  onTestFinished(() => mock.timers.reset());
  const clock = await newClock({ now: EIGHT, timers: mock.timers });
  const line = newLine();
  const name = uniqueName("timers");
  const seen: string[] = [];
  line.getBlockingQueue<string>(name).subscribe(async () => {
    seen.push(new Date().toISOString());
    await new Promise((resolve) => setTimeout(resolve, 5 * MINUTE));
    seen.push(new Date().toISOString());
  });
  await line.getDelayedQueue<string>(name).offer("work", HOUR);
  await clock.advance("2 hours");
  expect(seen).toEqual(["2026-03-28T09:00:00.000Z", "2026-03-28T09:05:00.000Z"]);
  await line.close();
});

test.each([
  { whose: "Vitest's", timers: () => vi },
  // Vitest's are one of them.
  { whose: "Sinon's", timers: () => (setTimeout as unknown as { clock: FakeTimers }).clock },
])(
  "timers: $whose timeouts in the middle of an advance pass at their instants, whenever they were set",
  async ({ timers }) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const seen: string[] = [];
    const offerIn = (hours: number, when: string) => {
      setTimeout(() => void queue?.offer(when, HOUR), hours * HOUR);
    };
    let queue: DelayedQueue<string> | undefined;
    offerIn(5, "before the clock");
    const clock = await newClock({ now: EIGHT, timers: timers() });
    const line = newLine();
    const name = uniqueName("timers");
    queue = line.getDelayedQueue<string>(name);
    line
      .getBlockingQueue<string>(name)
      .subscribe((when) => void seen.push(`${when}: ${clock.now.toISOString().slice(0, 16)}`));
    offerIn(6, "after it");
    // Of a clock that was never made global, or of a copy of the functions that was taken before.
    const { clock: hidden } = setTimeout as unknown as { clock: typeof globalThis };
    hidden.setTimeout(() => void queue?.offer("hidden", HOUR), 7 * HOUR);
    await clock.advance("1 day");
    expect(seen).toEqual([
      "before the clock: 2026-03-28T14:00",
      "after it: 2026-03-28T15:00",
      "hidden: 2026-03-28T16:00",
    ]);
    await line.close();
    await clock.close();
  },
);

test("timers: Vitest's timers and its Date follow, and a handler's own timeout passes", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const former = currentRuntime();
  const clock = await newClock({ now: EIGHT, timers: vi });
  const line = newLine();
  const name = uniqueName("timers");
  const seen: string[] = [];
  line.getBlockingQueue<string>(name).subscribe(async (text) => {
    seen.push(`${text} begins ${new Date().toISOString()}`);
    await new Promise((resolve) => setTimeout(resolve, 5 * MINUTE));
    seen.push(`${text} ends ${new Date().toISOString()}`);
  });
  await line.getDelayedQueue<string>(name).offer("work", HOUR);
  let ticks = 0;
  const interval = setInterval(() => ticks++, 10 * MINUTE);
  await clock.advance("2 hours");
  clearInterval(interval);
  expect(seen).toEqual([
    "work begins 2026-03-28T09:00:00.000Z",
    "work ends 2026-03-28T09:05:00.000Z",
  ]);
  expect(ticks).toBe(12);
  expect(new Date()).toEqual(clock.now);
  await line.close();
  await clock.close();
  expect(currentRuntime()).toBe(former);
});
