import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const TO_ACME = { every: MINUTE, payload: "run", lane: "acme", priority: 7 } as const;

const keyOf = (tick: number) => `schedule:job@${new Date(tick).toISOString()}`;

test("each tick has the schedule's lane and priority, whoever plans it; so have runs beside the ticks", async () => {
  const name = uniqueName("lanes");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const declaring = newLine({ transfer: false });
  const { schedules } = declaring.getReliableQueue<string>(name);
  const { next } = await schedules.upsert("job", TO_ACME);
  expect(await schedules.get("job")).toMatchObject({ lane: "acme", priority: 7 });
  await declaring.close();

  const jobs = newLine().getReliableQueue<string>(name);
  const placed = await jobs.get(keyOf(next[0] as number));
  expect(placed).toMatchObject({ lane: "acme", priority: 7 });
  await clock.advance(5 * MINUTE);
  const later = (await jobs.schedules.get("job"))?.next[0] as number;
  expect(later).toBeGreaterThan(Math.max(...next));
  expect(await jobs.get(keyOf(later))).toMatchObject({ lane: "acme", priority: 7 });
  for (let i = 0; i < 5; i++) {
    const delivery = await jobs.take();
    expect(delivery.lane).toBe("acme");
    await delivery.ack();
  }
  const triggered = await jobs.schedules.trigger("job");
  expect(triggered).toMatchObject({ outcome: "added" });
  expect((await jobs.take()).lane).toBe("acme");
  const from = Date.UTC(2026, 4, 31);
  await jobs.schedules.backfill("job", { from, to: from + MINUTE });
  expect((await jobs.take()).lane).toBe("acme");
});

test("another lane is a change, and so is none: what is placed is replaced", async () => {
  const jobs = newLine({ transfer: false }).getDelayedQueue<string>(uniqueName("lanes"));
  const laneOf = async (next: readonly number[]) =>
    (await jobs.get(keyOf(next[0] as number)))?.lane;
  const { schedules } = jobs;
  const every = 60 * MINUTE;
  await schedules.upsert("job", { every, payload: "run", lane: "acme" });
  expect(
    await schedules.upsert("job", { every, payload: "run", lane: "acme", priority: 0 }),
  ).toMatchObject({
    outcome: "unchanged",
  });
  const other = await schedules.upsert("job", { every, payload: "run", lane: "other" });
  expect(other.outcome).toBe("changed");
  expect(await laneOf(other.next)).toBe("other");
  const urgent = await schedules.upsert("job", { every, payload: "run", priority: 1 });
  expect(urgent.outcome).toBe("changed");
  expect(await laneOf(urgent.next)).toBeUndefined();
  const bare = await schedules.upsert("job", { every, payload: "run" });
  expect(bare.outcome).toBe("changed");
  expect(await schedules.get("job")).not.toHaveProperty("priority");
  expect(await jobs.size()).toBe(bare.next.length);
});

test("a lane in a set counts: the same revision with another one is a conflict", async () => {
  const { schedules } = newLine({ transfer: false }).getDelayedQueue(uniqueName("lanes"));
  const one = { every: 60 * MINUTE, payload: "run", lane: "a" };
  await schedules.declare("set", { one }, { revision: 1 });
  const again = await schedules.declare("set", { one: { ...one, lane: "b" } }, { revision: 1 });
  expect(again.outcome).toBe("conflict");
  const next = await schedules.declare("set", { one: { ...one, lane: "b" } }, { revision: 2 });
  expect(next.changed).toEqual(["one"]);
});

test("a schedule that an older release has stored goes on without a lane", async () => {
  const name = uniqueName("lanes");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const declaring = newLine({ transfer: false });
  await declaring.getDelayedQueue<string>(name).schedules.upsert("job", TO_ACME);
  const redis = newRedis();
  const { schedules: hash } = queueKeys(name);
  const record = (await redis.hgetBuffer(hash, "job"))?.toString("latin1") ?? "";
  const older = record.replace(`,"lane":"acme","priority":7`, "");
  expect(older).not.toBe(record);
  await redis.hset(hash, "job", Buffer.from(older, "latin1"));
  const jobs = newLine().getReliableQueue<string>(name);
  await clock.advance(5 * MINUTE);
  const schedule = await jobs.schedules.get("job");
  expect(schedule).not.toHaveProperty("lane");
  const placed = await jobs.get(keyOf(schedule?.next[0] as number));
  expect([placed?.lane, placed?.priority]).toEqual([undefined, undefined]);
});

test("ticks wait in their lane, by priority, while others go on", async () => {
  const name = uniqueName("lanes");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name);
  await jobs.flow.set({ lane: {} });
  await jobs.flow.hold("acme", 75 * SECOND);
  const { schedules } = jobs;
  await schedules.upsert("later", { every: MINUTE, payload: "later", lane: "acme" });
  await schedules.upsert("sooner", { every: MINUTE, payload: "sooner", lane: "acme", priority: 5 });
  await schedules.upsert("elsewhere", { every: MINUTE, payload: "elsewhere", lane: "other" });
  await clock.advance(MINUTE);
  await eventually(async () => (await jobs.stats()).waiting === 2);
  expect(await jobs.stats()).toMatchObject({ ready: 1 });
  await (await jobs.take()).ack();
  await clock.advance(20 * SECOND);
  const payloads = [(await jobs.take()).payload, (await jobs.take()).payload];
  expect(payloads).toEqual(["sooner", "later"]);
});
