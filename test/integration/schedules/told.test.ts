import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock } from "../../helpers/test-clock.ts";

/* What is told of a schedule is what will come, and what did not. */

const NIGHTLY = { every: DAY, payload: "run" } as const;

test.each(["skip", "once"] as const)(
  "with misfire %s, a pause of three days leaves out as many ticks as are missed",
  async (misfire) => {
    const clock = await newClock({ now: "2026-06-01T12:00:00Z" });
    const jobs = newLine().getReliableQueue<string>(uniqueName("told"));
    await jobs.schedules.upsert("nightly", { ...NIGHTLY, misfire });
    await jobs.pause();
    await clock.advance(3 * DAY);
    await jobs.resume();
    await clock.advance(HOUR);
    const came = (await jobs.stats()).ready;
    expect(came).toBe(misfire === "once" ? 1 : 0);
    expect(await jobs.schedules.get("nightly")).toMatchObject({ missed: 3 - came });
    for await (const { missed } of jobs.schedules.list()) expect(missed).toBe(3 - came);
  },
);

test("runs that overlap has dropped are counted for their schedule, until it is removed", async () => {
  const name = uniqueName("told");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 10 * HOUR });
  const often = { every: MINUTE, payload: "run", overlap: "skip", misfire: "all" } as const;
  await jobs.schedules.upsert("hung", often);
  await jobs.schedules.upsert("other", { ...often, overlap: "allow" });
  await clock.advance(19 * MINUTE);
  expect(await jobs.schedules.get("hung")).toMatchObject({ droppedOverlap: 18, missed: 0 });
  expect(await jobs.schedules.get("other")).toMatchObject({ droppedOverlap: 0, missed: 0 });
  await jobs.schedules.remove("hung");
  const fields = await newRedis().hkeys(`delayline_dropped:{${name}}`);
  expect(fields.filter((field) => !field.startsWith("#"))).toEqual(["overlap"]);
});

test("next is what still waits: without what was cancelled, or cleared; then it goes on", async () => {
  const clock = await newClock({ now: "2026-06-01T12:00:00Z" });
  const jobs = newLine().getReliableQueue<string>(uniqueName("told"));
  await jobs.schedules.upsert("nightly", NIGHTLY);
  const next = async () =>
    (await jobs.schedules.get("nightly"))?.next.map((at) => new Date(at).getUTCDate());
  expect(await next()).toEqual([2, 3]);
  await jobs.cancel("schedule:nightly@2026-06-02T00:00:00.000Z");
  expect(await next()).toEqual([3]);
  expect((await jobs.schedules.upsert("nightly", NIGHTLY)).next).toHaveLength(1);
  await jobs.clear();
  expect(await next()).toEqual([]);
  for await (const one of jobs.schedules.list()) expect(one.next).toEqual([]);
  expect(await jobs.schedules.upsert("nightly", NIGHTLY)).toEqual({
    outcome: "unchanged",
    next: [],
  });
  await clock.advance(2 * DAY);
  expect(await next()).toEqual([4, 5]);
  expect(await jobs.schedules.get("nightly")).toMatchObject({ missed: 0 });
});

test("next is told of a schedule in a partition, too", async () => {
  const line = newLine();
  const jobs = line.getReliableQueue<string>(uniqueName("told"), { partitions: 3 });
  for (const name of ["a", "b", "c", "d"]) await jobs.schedules.upsert(name, NIGHTLY);
  const found = await jobs.schedules.get("a");
  expect(found?.next).toHaveLength(2);
  for await (const { next } of jobs.schedules.list()) expect(next).toHaveLength(2);
  await jobs.clear();
  for await (const { next } of jobs.schedules.list()) expect(next).toHaveLength(0);
});
