import { expect, test } from "vitest";
import { defineQueue, type Delayline, type PlainQueue } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

/*
 * What users of schedulers report where the next run is made when the last one is taken: schedules that stop, runs that
 * come twice, and storms of them. Each has a test here.
 */

/** A plain queue of texts, opened as by one process. */
function open(name: string, line: Delayline = newLine()): PlainQueue<string> {
  return line.open(defineQueue<string>(name));
}

const at = { payload: ({ at: tick }: { at: Date }) => tick.toISOString().slice(11, 19) };

test("twenty processes that declare the same add it once", async () => {
  const name = uniqueName("schedules");
  const options = { cron: "30 2 * * *", timeZone: "Europe/Berlin", payload: "nightly" };
  const all = Array.from({ length: 20 }, () => open(name));
  const results = await Promise.all(all.map(({ schedules }) => schedules.upsert("n", options)));
  const outcomes = results.map(({ outcome }) => outcome).toSorted();
  expect(outcomes).toEqual(["added", ...Array.from({ length: 19 }, () => "unchanged")]);
  const [one] = all as [PlainQueue<string>];
  expect(await one.size()).toBe(2);
  expect(results.every(({ next }) => next.join() === results[0]?.next.join())).toBe(true);
});

test("twenty processes that declare it in two forms, to and fro: one form stays, with its messages alone", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const all = Array.from({ length: 20 }, () => open(name, newLine({ transfer: false })));
  await Promise.all(
    all.map(({ schedules }, i) =>
      schedules.upsert("go", { every: MINUTE, payload: i % 2 === 0 ? "old" : "new" }),
    ),
  );
  const orders = open(name);
  expect(await orders.size()).toBe(2);
  expect(await orders.schedules.get("go")).toMatchObject({ count: 2 });
  await clock.advance(5 * MINUTE);
  const runs = await orders.ready.readAll();
  expect(runs).toHaveLength(5);
  expect(new Set(runs).size).toBe(1);
});

test("removed and declared again at once, by several processes: it comes, once per tick", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const all = [open(name), open(name), open(name)];
  const options = { every: MINUTE, misfire: "all", ...at } as const;
  for (let i = 0; i < 5; i++) {
    await Promise.all(
      all.map(async ({ schedules }) => {
        await schedules.remove("go");
        await schedules.upsert("go", options);
      }),
    );
  }
  const [orders] = all as [PlainQueue<string>];
  await orders.schedules.upsert("go", options);
  expect(await orders.size()).toBe(2);
  await clock.advance(5 * MINUTE);
  expect(await orders.ready.readAll()).toEqual([1, 2, 3, 4, 5].map((minute) => `00:0${minute}:00`));
});

test("two processes that restart in turns: it does not stop, and no tick comes twice", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const options = { every: MINUTE, misfire: "all", ...at } as const;
  const lines = [newLine(), newLine()];
  for (const line of lines) await open(name, line).schedules.upsert("go", options);
  for (let i = 0; i < 10; i++) {
    await lines[i % 2]?.close();
    await clock.advance(MINUTE);
    const line = newLine();
    lines[i % 2] = line;
    await open(name, line).schedules.upsert("go", options);
  }
  const runs = await open(name).ready.readAll();
  expect(runs).toEqual(
    Array.from({ length: 10 }, (_, i) => `00:${String(i + 1).padStart(2, "0")}:00`),
  );
});

test("ten processes return after an outage of an hour: no storm of missed runs, one comes", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:00.500Z" });
  const before = newLine();
  const options = { every: SECOND, ...at };
  await open(name, before).schedules.upsert("go", options);
  await before.close();
  await clock.advance(HOUR);
  const all = Array.from({ length: 10 }, () => open(name));
  await Promise.all(all.map(({ schedules }) => schedules.upsert("go", options)));
  await clock.advance(3 * SECOND);
  const [orders] = all as [PlainQueue<string>];
  expect(await orders.ready.readAll()).toEqual(["01:00:00", "01:00:01", "01:00:02", "01:00:03"]);
});

test("runs that fail for good, or whose process dies with them: the next ones come", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name, { maxAttempts: 1, leaseTimeout: HOUR });
  await jobs.schedules.upsert("go", { every: MINUTE, misfire: "all", ...at });
  const runs: string[] = [];
  for (let i = 0; i < 6; i++) {
    await clock.advance(MINUTE);
    const run = await jobs.take();
    runs.push(run.payload);
    // The others stay in flight, as if nobody were there any more.
    if (i % 2 === 0) await run.reject("no");
  }
  expect(runs).toEqual([1, 2, 3, 4, 5, 6].map((minute) => `00:0${minute}:00`));
});

test("all delayed messages are removed: the schedule goes on behind them", async () => {
  const name = uniqueName("schedules");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const orders = open(name);
  await orders.schedules.upsert("go", { every: MINUTE, misfire: "all", ...at });
  await orders.clear();
  expect(await orders.size()).toBe(0);
  await clock.advance(5 * MINUTE);
  expect(await orders.ready.readAll()).toEqual(["00:03:00", "00:04:00", "00:05:00"]);
});
