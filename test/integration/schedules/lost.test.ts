import { expect, test } from "vitest";
import type { ReliableQueue } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

/*
 * Redis may lose a key by itself: with maxmemory-policy allkeys-lru it evicts whole keys, and operators delete some.
 */

const OPTIONS = { every: 10 * SECOND, payload: "run", misfire: "all" } as const;

async function ticksIn(jobs: ReliableQueue<string>): Promise<string[]> {
  const ticks: string[] = [];
  for (const delivery of await jobs.takeMany({ limit: 1000 })) {
    ticks.push(delivery.key ?? "");
    await delivery.ack();
  }
  return ticks.toSorted();
}

test("without delayline_planning, an unchanged declaration puts back when to plan a schedule", async () => {
  const name = uniqueName("lost");
  const clock = await newClock({ now: "2026-06-01T00:00:05Z" });
  const redis = newRedis();
  const declared = newLine({ transfer: false }).getReliableQueue<string>(name);
  const [one, set] = [
    { ...OPTIONS, every: HOUR },
    { two: OPTIONS, over: { ...OPTIONS, limit: 1 } },
  ];
  await declared.schedules.upsert("one", one);
  await declared.schedules.declare("set", set, { revision: 1 });
  await declared.schedules.pause("two");
  await clock.advance(MINUTE);
  await redis.del(`delayline_planning:{${name}}`);
  expect(await declared.stats()).toMatchObject({ schedules: 3, unplanned: 3 });
  expect(await declared.schedules.get("one")).toMatchObject({ planAt: 0 });

  expect(await declared.schedules.upsert("one", one)).toMatchObject({ outcome: "unchanged" });
  expect(await declared.schedules.get("one")).toMatchObject({ planAt: clock.now.getTime() });
  const again = await declared.schedules.declare("set", set, { revision: 1 });
  expect(again).toMatchObject({ unchanged: ["two", "over"] });
  const planning = await redis.zrange(`delayline_planning:{${name}}`, "0", "-1");
  expect(planning).toHaveLength(3);
  expect(await declared.schedules.get("two")).toMatchObject({ isPaused: true, planAt: Infinity });
  expect(await declared.stats()).toMatchObject({ schedules: 3, unplanned: 0 });
  // Nothing is written again.
  const before = await redis.hgetall(`delayline_schedules:{${name}}`);
  await declared.schedules.upsert("one", one);
  await declared.schedules.declare("set", set, { revision: 1 });
  expect(await redis.hgetall(`delayline_schedules:{${name}}`)).toEqual(before);
});

test("without delayline_planning, a process that moves messages puts it back, and no tick is lost", async () => {
  const name = uniqueName("lost");
  const clock = await newClock({ now: "2026-06-01T00:00:05Z" });
  const jobs = newLine().getReliableQueue<string>(name);
  await jobs.schedules.upsert("job", OPTIONS);
  await clock.advance(MINUTE);
  await newRedis().del(`delayline_planning:{${name}}`);
  await clock.advance(5 * MINUTE);
  const ticks = await ticksIn(jobs);
  expect(new Set(ticks).size).toBe(36);
  expect(ticks).toHaveLength(36);
  expect(await jobs.schedules.get("job")).toMatchObject({ missed: 0 });
});

test("where there are only revisions of sets, nobody looks for schedules again and again", async () => {
  const name = uniqueName("lost");
  const clock = await newClock();
  const redis = newRedis();
  const jobs = newLine().getReliableQueue<string>(name);
  await jobs.schedules.declare("set", { job: OPTIONS }, { revision: 1 });
  await jobs.schedules.declare("set", {}, { revision: 2 });
  await clock.advance(5 * MINUTE);
  expect(await redis.keys(`delayline_planning:{${name}}`)).toEqual([]);
  expect(await jobs.stats()).toMatchObject({ schedules: 0, unplanned: 0 });
  await jobs.schedules.declare("set", { job: OPTIONS }, { revision: 3 });
  await clock.advance(MINUTE);
  expect(await ticksIn(jobs)).toHaveLength(6);
  await redis.del(`delayline_planning:{${name}}`);
  await clock.advance(5 * MINUTE);
  expect(await ticksIn(jobs)).toHaveLength(30);
});

test("without delayline_schedules, what is declared again comes once, with the new payload", async () => {
  const name = uniqueName("lost");
  const clock = await newClock({ now: "2026-06-01T00:00:05Z" });
  const redis = newRedis();
  const jobs = newLine().getReliableQueue<string>(name);
  const names = ["a", "b"];
  for (const job of names) await jobs.schedules.upsert(job, { ...OPTIONS, payload: () => "old" });
  await clock.advance(20 * SECOND);
  await redis.del(`delayline_schedules:{${name}}`);
  for (const job of names) await jobs.schedules.upsert(job, { ...OPTIONS, payload: "new" });
  await clock.advance(40 * SECOND);
  const runs = await jobs.takeMany({ limit: 100 });
  const keys = runs.map(({ key }) => key);
  expect(keys).toHaveLength(12);
  expect(new Set(keys).size).toBe(12);
  expect(runs.map(({ payload }) => payload).toSorted()).toEqual([
    ...Array.from({ length: 8 }, () => "new"),
    ...Array.from({ length: 4 }, () => "old"),
  ]);
  for (const run of runs) await run.ack();
  for (const job of names) await jobs.schedules.remove(job);
  await eventually(async () => (await jobs.size()) === 0);
});
