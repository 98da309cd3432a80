import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import type { DroppedEvent } from "../../../src/events.ts";
import { callsOf } from "../../helpers/calls.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const OPTIONS = { every: MINUTE, overlap: "skip", misfire: "all", payload: "run" } as const;

test("overlap skip: a run is dropped while another is ready or in flight, and not while it waits for a retry", async () => {
  const name = uniqueName("overlap");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name, {
    retry: { initial: 10 * MINUTE },
    leaseTimeout: 30 * MINUTE,
  });
  const heard: DroppedEvent[] = [];
  const hear = (event: unknown) => heard.push(event as DroppedEvent);
  subscribe("delayline:dropped", hear);
  onTestFinished(() => void unsubscribe("delayline:dropped", hear));
  await jobs.schedules.upsert("job", OPTIONS);

  await clock.advance(3 * MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 1, dropped: 2, droppedOverlap: 2 });
  const dropped = heard.filter(({ queue }) => queue === name);
  expect(dropped.map(({ key, reason }) => [key?.slice(-13), reason])).toEqual([
    ["00:02:00.000Z", "overlap"],
    ["00:03:00.000Z", "overlap"],
  ]);
  const first = await jobs.take();
  await clock.advance(2 * MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 0, inFlight: 1, droppedOverlap: 4 });

  // It waits for its retry, so the next run comes; and while that is in flight, the retry comes, too.
  await first.nack();
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 1, retries: 1, droppedOverlap: 4 });
  const second = await jobs.take();
  await second.ack();
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 1, droppedOverlap: 4 });
  await (await jobs.take()).ack();
  await clock.advance(8 * MINUTE + SECOND);
  await eventually(async () => (await jobs.stats()).retries === 0);
});

test("a retry that is ready or in flight is a run as well", async () => {
  const name = uniqueName("overlap");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name);
  await jobs.schedules.upsert("job", OPTIONS);
  await clock.advance(MINUTE);
  await (await jobs.take()).nack({ delay: 75 * SECOND });
  await clock.advance(MINUTE);
  await (await jobs.take()).ack();
  // The retry is ready by now.
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 1, droppedOverlap: 1 });
});

test("a run in flight is remembered, whatever other runs come and end meanwhile", async () => {
  const name = uniqueName("overlap");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 60 * MINUTE });
  await jobs.schedules.upsert("job", OPTIONS);
  await clock.advance(MINUTE);
  const failed = await jobs.take();
  await failed.nack({ delay: 90 * SECOND });
  await clock.advance(MINUTE);
  const slow = await jobs.take();
  // The retry of an older run comes beside it, and ends; then one that is triggered, and twenty more.
  await clock.advance(MINUTE);
  await (await jobs.take()).ack();
  await jobs.schedules.trigger("job");
  await (await jobs.take()).ack();
  const { droppedOverlap: before } = await jobs.stats();
  await clock.advance(2 * MINUTE);
  expect(await jobs.stats()).toMatchObject({
    ready: 0,
    inFlight: 1,
    droppedOverlap: before + 2,
  });
  for (let i = 0; i < 20; i++) await jobs.schedules.trigger("job");
  await eventually(async () => (await jobs.stats()).ready === 20);
  const noted = await newRedis().hget(`delayline_running:{${name}}`, "job");
  expect(noted?.split(" ")).toHaveLength(16);
  for (let i = 0; i < 20; i++) await (await jobs.take()).ack();
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 0, droppedOverlap: before + 3 });
  await slow.ack();
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 1, droppedOverlap: before + 3 });
  expect(await newRedis().hget(`delayline_running:{${name}}`, "job")).toMatch(/^\d+-\d+$/);
});

test("its notes are read once for a run, and written once", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const measure = async (overlap: "allow" | "skip") => {
    const line = newLine({ redis: server.url });
    const jobs = line.getReliableQueue<string>(uniqueName("overlap"));
    await jobs.schedules.upsert("job", { ...OPTIONS, overlap });
    await clock.advance(MINUTE);
    await (await jobs.take()).ack();
    await redis.config("RESETSTAT");
    await clock.advance(MINUTE);
    const { hget = 0, hset = 0 } = await callsOf(redis);
    await line.close();
    return [hget, hset];
  };
  const [allowed, skipping] = [await measure("allow"), await measure("skip")];
  expect(skipping.map((count, i) => count - (allowed[i] ?? 0))).toEqual([1, 1]);
});

test("of several that are due at once one is let through; a triggered run comes always, and counts", async () => {
  const name = uniqueName("overlap");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const producing = newLine({ transfer: false });
  const declared = producing.getReliableQueue<string>(name);
  await declared.schedules.upsert("job", { ...OPTIONS, every: SECOND });
  await clock.advance(20 * SECOND);
  const jobs = newLine().getReliableQueue<string>(name);
  await eventually(async () => (await jobs.stats()).droppedOverlap >= 19);
  expect(await jobs.stats()).toMatchObject({ ready: 1 });
  const result = await jobs.schedules.trigger("job");
  expect(result).toMatchObject({ outcome: "added" });
  await eventually(async () => (await jobs.stats()).ready === 2);
  await (await jobs.take()).ack();
  // The planned one is handled, and the triggered one is ready.
  const before = (await jobs.stats()).droppedOverlap;
  await clock.advance(2 * SECOND);
  expect(await jobs.stats()).toMatchObject({ ready: 1, droppedOverlap: before + 2 });
  const key = `schedule:job@2026-06-01T00:00:50`;
  expect((await jobs.take()).key?.startsWith(key)).toBe(true);
});

test("a change of the number of partitions: what is ready goes along; a run in flight does not hold up the next one", async () => {
  const name = uniqueName("overlap");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const line = newLine();
  const jobs = line.getReliableQueue<string>(name, { partitions: 1, leaseTimeout: 30 * MINUTE });
  const names = Array.from({ length: 8 }, (_, i) => `job ${i}`);
  for (const job of names) await jobs.schedules.upsert(job, OPTIONS);
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 8, droppedOverlap: 0 });
  await line.setPartitions(name, 3);
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 8, droppedOverlap: 8 });

  for (const _ of names) await jobs.take();
  await line.setPartitions(name, 4);
  await clock.advance(MINUTE);
  const { ready, droppedOverlap } = await jobs.stats();
  expect([ready > 0, ready < 8, droppedOverlap]).toEqual([true, true, 16 - ready]);
  // In its new partition the run beside is noted.
  await clock.advance(MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready, droppedOverlap: droppedOverlap + 8 });
});

test("without overlap skip nothing is noted about runs", async () => {
  const name = uniqueName("overlap");
  const jobs = newLine().getReliableQueue<string>(name);
  await jobs.schedules.upsert("job", { every: 100, payload: "run" });
  await (await jobs.take()).ack();
  expect(await newRedis().exists(`delayline_running:{${name}}`)).toBe(0);
});
