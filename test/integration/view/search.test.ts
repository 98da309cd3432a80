import { expect, onTestFinished, test } from "vitest";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { lifeOf, type Moment } from "../../../src/tools/view/life.ts";
import { search, type SearchOptions, type SearchReport } from "../../../src/tools/view/search.ts";
import type { Sighting } from "../../../src/tools/view/sighting.ts";
import { parseMessageId } from "../../../src/queue/message/message.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

const HOUR = 3_600_000;

/** Searches to the end; returns what was found, and what was left out. */
async function find(
  idOrKey: string,
  options?: SearchOptions,
): Promise<{ sightings: Sighting[]; report: SearchReport; steps: number }> {
  const inspector = new Inspector({ redis: redisUrl() });
  onTestFinished(() => inspector.close());
  const searching = search(inspector, idOrKey, options);
  const sightings: Sighting[] = [];
  for (let steps = 1; ; steps++) {
    const { value, done } = await searching.next();
    if (done) return { sightings, report: value, steps };
    if (value !== undefined) sightings.push(value);
  }
}

const seen = ({ state, queue, id }: Sighting) => [state, [queue, id]] as const;

const what = (moments: readonly Moment[]) => moments.map((moment) => moment.what);

test("a message is found among all queues in every state, by its id and by its key", async () => {
  const line = newLine();
  const key = `order:${uniqueName()}`;
  const plain = line.getDelayedQueue(uniqueName());
  const reliable = line.getReliableQueue(uniqueName(), { retry: () => HOUR });
  const parted = line.getReliableQueue(uniqueName(), { partitions: 3 });
  const delayed = await plain.offer("x", HOUR, { key });
  const retrying = await reliable.offer("x", 0, { key });
  await (await reliable.take()).nack();
  const dead = await parted.offer("x", 0, { key });
  await (await parted.take()).reject("no such customer");
  const flying = await parted.offer("x", 0, { key });
  const delivery = await parted.take();
  const names = [plain.name, reliable.name, parted.name];
  const expected = new Map([
    ["delayed", [plain.name, delayed.id]],
    ["retrying", [reliable.name, retrying.id]],
    ["in flight", [parted.name, flying.id]],
    ["dead", [parted.name, dead.id]],
  ]);
  const byKey = await find(key, { names });
  expect(new Map(byKey.sightings.map(seen))).toEqual(expected);
  expect(byKey.report).toEqual({
    queues: 3,
    unread: [],
    unsearchable: [],
    failed: [],
    handled: [],
    forgetful: [],
  });
  for (const [state, place] of expected) {
    const { sightings } = await find(place[1] as string, { names });
    expect(sightings.map(seen)).toEqual([[state, place]]);
  }
  // Without names, all queues of the server are asked.
  const { sightings, report } = await find(dead.id);
  expect(sightings.map(seen)).toEqual([["dead", [parted.name, dead.id]]]);
  expect(report.queues).toBeGreaterThanOrEqual(3);
  await delivery.ack();
});

test("the life of a message: offered, due, failed, ready, taken, and what comes next", async () => {
  const line = newLine();
  const queue = line.getReliableQueue(uniqueName(), { retry: [1, HOUR], maxAttempts: 3 });
  const { id, deadline } = await queue.offer("x", 0, { key: "k" });
  const look = async () => {
    const { sightings } = await find(id, { names: [queue.name] });
    return lifeOf(sightings[0] as Sighting);
  };
  await (await queue.take()).nack({ reason: "no connection" });
  const second = await queue.take();
  const flying = await look();
  expect(what(flying)).toEqual(["offered", "due", "failed", "ready", "taken"]);
  expect(flying[1]).toEqual({ what: "due", at: deadline });
  expect(flying[2]).toMatchObject({ attempt: 1, reason: "no connection" });
  expect(flying[4]).toMatchObject({ attempt: 2, pid: process.pid, host: expect.any(String) });
  await second.nack();
  const waiting = await look();
  expect(what(waiting)).toEqual(["offered", "due", "failed", "failed", "retry"]);
  expect(waiting.at(-1)).toMatchObject({ attempt: 3, group: "default" });
  expect(waiting.at(-1)?.at).toBeGreaterThan(Date.now() + HOUR / 2);
  await queue.promote(id);
  await (await queue.take()).reject("it is enough");
  const ended = await look();
  expect(what(ended)).toEqual(["offered", "due", "failed", "failed", "failed", "died"]);
  expect(ended.at(-1)).toMatchObject({ reason: "it is enough" });
  await queue.deadLetters.redrive(id, { delay: HOUR });
  const redriven = await look();
  expect(redriven.map(({ isBeforeRedrive = false }) => isBeforeRedrive)).toEqual([
    false,
    false,
    true,
    true,
    true,
    false,
  ]);
  expect(redriven.at(-1)).toMatchObject({ what: "retry", attempt: 1 });
});

test("a search for a key is bounded, and says from when on it did not look", async () => {
  const queue = newLine().getReliableQueue(uniqueName());
  await queue.poll();
  const rows = Array.from({ length: 450 }, (_, i) => ({ payload: "x", delay: 0, key: `k:${i}` }));
  await queue.offerMany(rows);
  await eventually(async () => (await queue.stats()).ready === 450);
  const names = [queue.name];
  const first = await find("k:0", { names, most: 200 });
  expect(first.sightings).toMatchObject([{ state: "ready", key: "k:0" }]);
  expect(first.report.unread).toEqual([
    { queue: queue.name, partition: undefined, place: "stream", from: expect.any(Number) },
  ]);
  const last = await find("k:449", { names, most: 200 });
  expect(last.sightings).toEqual([]);
  const all = await find("k:449", { names });
  expect(all.sightings.length).toBe(1);
  expect(all.report.unread).toEqual([]);
  expect(all.steps).toBeGreaterThan(5);
});

test("a search for an id does not read what became ready long before its deadline", async () => {
  const queue = newLine().getReliableQueue(uniqueName());
  const redis = newRedis();
  const { id } = await queue.offer("x", 60_000);
  await queue.cancel(id);
  const stream = `delayline_stream:{${queue.name}}`;
  const entries = redis.pipeline();
  for (let i = 1; i <= 300; i++) entries.xadd(stream, `${i}-0`, "a", "x".repeat(24), "p", "x");
  entries.xadd(stream, "*", "a", parseMessageId(id), "p", "x");
  await redis.del(stream);
  await redis.xgroup("CREATE", stream, "default", "0", "MKSTREAM");
  await entries.exec();
  const { sightings, report } = await find(id, { names: [queue.name], most: 100 });
  expect(sightings).toMatchObject([{ state: "ready", id }]);
  expect(report.unread).toEqual([]);
});

test("plain queues with ready messages are told; a queue that cannot be read is told", async () => {
  const plain = newLine().getDelayedQueue(uniqueName());
  await plain.offer("x", 0);
  await eventually(async () => (await plain.stats()).ready === 1);
  const broken = uniqueName();
  await newRedis().set(`delayline_stream:{${broken}}`, "no stream");
  const { sightings, report } = await find("k", { names: [plain.name, broken] });
  expect(sightings).toEqual([]);
  expect(report).toMatchObject({ unsearchable: [plain.name], failed: [{ queue: broken }] });
});
