import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Delivery, ReliableQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

const WAIT = { every: MINUTE, overlap: "wait", misfire: "all", payload: "run" } as const;

const tickOf = ({ key }: Delivery<string>) => key?.slice("schedule:job@".length);

/** Resolves once so many messages of the queue wait for their turn. */
const waiting = (jobs: ReliableQueue<string>, count: number) =>
  eventually(async () => (await jobs.stats()).waiting === count);

test("runs wait for each other, over two clients, and other messages do not wait for them", async () => {
  const name = uniqueName("wait");
  const lines = [newLine(), newLine()];
  let [inHand, most] = [0, 0];
  const handled: (string | undefined)[] = [];
  const others: number[] = [];
  const limit = 8;
  const started = Date.now();
  for (const line of lines) {
    line.getReliableQueue<string>(name).subscribe(
      async (payload, delivery) => {
        if (payload !== "run") {
          others.push(Date.now() - Number(payload));
          return;
        }
        most = Math.max(most, ++inHand);
        await sleep(350);
        inHand--;
        handled.push(tickOf(delivery));
      },
      { concurrency: 10 },
    );
  }
  const jobs = lines[0]?.getReliableQueue<string>(name) as ReliableQueue<string>;
  await jobs.schedules.upsert("job", { ...WAIT, every: 200, limit });
  for (let i = 0; i < 20; i++) {
    await jobs.offer(String(Date.now() + 20), 20);
    await sleep(60);
  }
  await eventually(() => handled.length === limit, { within: 20_000 });
  expect(most).toBe(1);
  expect(handled).toEqual([...new Set(handled)].toSorted((a = "", b = "") => (a < b ? -1 : 1)));
  expect(Date.now() - started).toBeGreaterThan(limit * 350);
  expect(others).toHaveLength(20);
  const [median] = others.toSorted((a, b) => a - b).slice(10);
  expect(median).toBeLessThan(200);
  expect(await jobs.flow.get()).toBeUndefined();
});

test("with misfire once the last one waits, and no more: an earlier one goes when the next one comes", async () => {
  const name = uniqueName("wait");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 60 * MINUTE });
  await jobs.schedules.upsert("job", { ...WAIT, every: 5 * SECOND, misfire: "once" });
  await clock.advance(5 * SECOND);
  const first = await jobs.take();
  await clock.advance(46 * SECOND);
  const { waiting: count, dropped } = await jobs.stats();
  expect([count, dropped]).toEqual([1, 8]);
  expect(await newRedis().hlen(queueKeys(name).room)).toBe(1);
  await first.ack();
  await clock.advance(SECOND);
  expect(tickOf(await jobs.take())).toBe("2026-06-01T00:01:20.000Z");
});

test("a run that was triggered or backfilled waits as well, and one that waits for its retry does not count", async () => {
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(uniqueName("wait"));
  await jobs.schedules.upsert("job", WAIT);
  await clock.advance(MINUTE);
  const first = await jobs.take();
  await jobs.schedules.trigger("job");
  const from = Date.UTC(2026, 4, 31);
  await jobs.schedules.backfill("job", { from, to: from + 2 * MINUTE });
  await waiting(jobs, 3);
  expect(await jobs.stats()).toMatchObject({ ready: 0, inFlight: 1 });
  await first.nack({ delay: 10 * SECOND });
  // In the order of their deadlines.
  const second = await jobs.take();
  expect(second.key).toMatch(/^schedule:job@2026-06-01T00:01:[0-9.]+Z!/);
  await clock.advance(11 * SECOND);
  await waiting(jobs, 3);
  await second.ack();
  const retried = await jobs.take();
  expect([retried.attempt, tickOf(retried)]).toEqual([2, "2026-06-01T00:01:00.000Z"]);
  await retried.ack();
  for (let i = 0; i < 2; i++) {
    const made = await jobs.take();
    expect(made.key).toContain("!backfill");
    expect((await jobs.stats()).inFlight).toBe(1);
    await made.ack();
  }
});

test("a killed worker's run comes again before the next one, one at a time", async () => {
  const name = uniqueName("wait");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const dying = newLine();
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 5000 });
  await jobs.schedules.upsert("job", WAIT);
  const first = dying.getReliableQueue<string>(name, { leaseTimeout: 5000 });
  const [taken] = await Promise.all([first.take(), clock.advance(MINUTE)]);
  expect(tickOf(taken)).toBe("2026-06-01T00:01:00.000Z");
  await dying.close({ handlerTimeout: 0 });
  await clock.advance(3 * MINUTE);
  const seen: [string | undefined, number][] = [];
  for (let i = 0; i < 4; i++) {
    const delivery = await jobs.take();
    const { ready, inFlight } = await jobs.stats();
    expect(ready + inFlight).toBe(1);
    seen.push([tickOf(delivery)?.slice(14, 16), delivery.attempt]);
    await delivery.ack();
  }
  expect(seen.map(([minute]) => minute)).toEqual(["01", "02", "03", "04"]);
});

test("removing and pausing withdraw what waits, however much; another overlap lets it go", async () => {
  const name = uniqueName("wait");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const redis = newRedis();
  const { flow, room, turns, lanes, resting, hands, businessKeys } = queueKeys(name);
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 60 * MINUTE });
  await jobs.schedules.upsert("job", WAIT);
  await clock.advance(MINUTE);
  const first = await jobs.take();
  const from = Date.UTC(2026, 4, 30);
  await jobs.schedules.backfill("job", { from, to: from + 1200 * MINUTE, limit: 1200 });
  await waiting(jobs, 1200);
  expect(await jobs.schedules.pause("job")).toBe(true);
  expect(await jobs.stats()).toMatchObject({ waiting: 0, delayed: 0, inFlight: 1 });
  expect(await redis.exists(room, turns, businessKeys)).toBe(0);
  await jobs.schedules.resume("job");
  await clock.advance(2 * MINUTE);
  await waiting(jobs, 2);
  await jobs.schedules.upsert("job", { ...WAIT, overlap: "allow" });
  await eventually(async () => (await jobs.stats()).ready === 2);
  expect(await redis.exists(flow, room, turns, lanes, resting, hands)).toBe(0);
  await jobs.schedules.upsert("job", WAIT);
  for (let i = 0; i < 2; i++) await (await jobs.take()).ack();
  await first.ack();
  await clock.advance(3 * MINUTE);
  await waiting(jobs, 2);
  expect(await jobs.schedules.remove("job")).toBe(true);
  expect(await jobs.stats()).toMatchObject({ waiting: 0, ready: 1 });
  expect(await redis.exists(flow, room, turns, lanes, resting, hands, businessKeys)).toBe(0);
  await jobs.offer("other", 0);
  await (await jobs.take()).ack();
  expect((await jobs.take()).payload).toBe("other");
});

test("a flow that is set or cleared meanwhile is the user's, and the runs still wait", async () => {
  const name = uniqueName("wait");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 60 * MINUTE });
  const bare = { rate: { limit: 1, per: 10_000, burst: 1 } };
  const flows = [
    { lane: { concurrency: 3 } },
    bare,
    { lane: {}, ...bare },
    { order: "turns" },
    undefined,
  ] as const;
  await jobs.schedules.upsert("job", WAIT);
  await clock.advance(MINUTE);
  let inHand = await jobs.take();
  await clock.advance(21 * SECOND);
  let minute = 1;
  for (const flow of flows) {
    if (flow === undefined) await jobs.flow.clear();
    else await jobs.flow.set(flow);
    expect(await jobs.flow.get()).toEqual(flow);
    await clock.advance(39 * SECOND);
    await waiting(jobs, 1);
    expect(await jobs.flow.state()).toMatchObject({
      waiting: 1,
      lanes: [{ lane: "schedule:job", waiting: 1 }],
    });
    // Others do not wait for the run.
    await jobs.offer("other", 0, { lane: "acme", priority: 3 });
    await clock.advance(SECOND);
    const other = await jobs.take();
    expect(other.payload).toBe("other");
    await other.ack();
    await inHand.ack();
    await clock.advance(20 * SECOND);
    inHand = await jobs.take();
    expect(tickOf(inHand)).toBe(`2026-06-01T00:0${++minute}:00.000Z`);
  }
});

test("a run holds its lane; no other lane is there to be held", async () => {
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(uniqueName("wait"));
  await jobs.schedules.upsert("job", WAIT);
  await expect(jobs.flow.hold("acme", 1000)).rejects.toThrow("no lanes to hold");
  await clock.advance(MINUTE);
  await (await jobs.take()).nack({ delay: 90 * SECOND, holdLane: true });
  await clock.advance(MINUTE);
  await waiting(jobs, 1);
  await clock.advance(31 * SECOND);
  expect(tickOf(await jobs.take())).toBe("2026-06-01T00:01:00.000Z");
});

test("if Redis loses the flow, the next planning puts the lane back", async () => {
  const name = uniqueName("wait");
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const redis = newRedis();
  const { flow } = queueKeys(name);
  const jobs = newLine().getReliableQueue<string>(name, { leaseTimeout: 60 * MINUTE });
  await jobs.schedules.upsert("job", WAIT);
  const before = await redis.hgetall(flow);
  await redis.del(flow);
  await clock.advance(2 * MINUTE);
  expect(await redis.hgetall(flow)).toMatchObject(before);
  await jobs.take();
  const inLane = await jobs.take();
  await clock.advance(2 * MINUTE);
  expect(await jobs.stats()).toMatchObject({ ready: 0, waiting: 2 });
  await inLane.ack();
  await jobs.take();
  expect(await jobs.stats()).toMatchObject({ ready: 0, waiting: 1 });
});

test("in a queue with partitions it is refused, and a queue with such a schedule gets none", async () => {
  const name = uniqueName("wait");
  const line = newLine();
  const parted = line.getReliableQueue<string>(uniqueName("wait"), { partitions: 2 });
  const error = 'overlap "wait" is for queues without partitions';
  await expect(parted.schedules.upsert("job", WAIT)).rejects.toThrow(error);
  const declared = parted.schedules.declare("set", { job: WAIT }, { revision: 1 });
  await expect(declared).rejects.toThrow(error);
  expect(await parted.schedules.revisionOf("set")).toBeUndefined();

  const jobs = line.getReliableQueue<string>(name);
  await jobs.schedules.upsert("job", { ...WAIT, every: 60 * MINUTE });
  await expect(line.setPartitions(name, 2)).rejects.toThrow("runs wait for each other");
  await jobs.schedules.remove("job");
  await line.setPartitions(name, 2);
});

test("a name of 100 bytes, and a lane beside", async () => {
  const clock = await newClock({ now: "2026-06-01T00:00:30Z" });
  const jobs = newLine().getReliableQueue<string>(uniqueName("wait"));
  const name = "ä".repeat(50);
  await expect(jobs.schedules.upsert(name, { ...WAIT, lane: "acme" })).rejects.toThrow(
    'lane goes without overlap "wait"',
  );
  await jobs.schedules.upsert(name, WAIT);
  await clock.advance(2 * MINUTE);
  const first = await jobs.take();
  expect(first.lane).toBe(`schedule:${name}`);
  await waiting(jobs, 1);
  await first.ack();
  await (await jobs.take()).ack();
});
