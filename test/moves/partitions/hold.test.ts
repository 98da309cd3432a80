import { expect, test } from "vitest";
import {
  hold,
  isHeld,
  noteHold,
  raiseFence,
  releaseHold,
  renewHold,
  tellHolder,
  type Hold,
} from "../../../src/lua/partitions/hold.ts";
import { inherit } from "../../../src/lua/partitions/inherit.ts";
import { again } from "../../../src/lua/reliable/deliveries.ts";
import { beginChange } from "../../../src/lua/partitions/fact.ts";
import { run } from "../../../src/lua/script.ts";
import { message, newMoves, type Moves } from "../../helpers/moves.ts";
import { failuresIn } from "../../../src/queue/message/trailer.ts";
import { startOwnServer } from "../../helpers/own-server.ts";

const DURATION = 60_000;

/** A fence that is far above the server's time, so the next ones are greater by one. */
const LAST = 8_000_000_000_000_000;

async function newPartition(url?: string): Promise<Moves> {
  const queue = await newMoves(url);
  await queue.redis.hset(queue.keys.holder, "fence", LAST);
  return queue;
}

/** Fences are counted from {@link LAST} here. */
async function take(
  { redis, keys }: Moves,
  process: string,
  group = "",
  past: number | "" = Date.now(),
): Promise<Omit<Hold, "serverTime">> {
  const args = { process, duration: DURATION, group, past };
  const { serverTime: _, ...found } = await run(redis, hold, keys, args);
  return { ...found, fence: found.fence - LAST };
}
const note = ({ redis, keys }: Moves, process: string, fence: number, connection: string) =>
  run(redis, noteHold, keys, { process, fence: LAST + fence, connection });
const release = ({ redis, keys }: Moves, process: string, fence: number) =>
  run(redis, releaseHold, keys, { process, fence: LAST + fence });

const entry = (payload: string, more = {}) => ({
  a: message(payload, 1).address,
  p: payload,
  ...more,
});

/** Ends the lease. */
const expire = ({ redis, keys }: Moves) => redis.hset(keys.holder, "until", 1);

async function holderOf(queue: Moves): Promise<Record<string, string>> {
  const { until: _, ...holder } = (await queue.snapshot()).holder ?? {};
  return holder;
}

test("one process holds a partition until it releases it or the lease is over; the fence grows with each new holder", async () => {
  const queue = await newPartition();
  const first = { isOurs: true, fence: 1, wait: 0, stale: [], orphans: [], group: "" };
  expect(await take(queue, "a")).toEqual(first);
  expect(await take(queue, "a")).toEqual(first);
  const refused = await take(queue, "b");
  expect(refused).toEqual({ ...first, isOurs: false, wait: refused.wait });
  expect(refused.wait).toBeGreaterThan(DURATION - 5000);
  expect(await release(queue, "b", 1)).toBe(false);
  expect(await release(queue, "a", 1)).toBe(true);
  expect(await release(queue, "a", 1)).toBe(false);
  expect(await holderOf(queue)).toEqual({
    fence: String(LAST + 1),
    orphans: "",
    stale: "",
  });
  expect(await take(queue, "b")).toEqual({ ...first, fence: 2 });
  await expire(queue);
  expect(await take(queue, "a")).toEqual({ ...first, fence: 3 });
  const { redis, keys } = queue;
  const renew = (process: string, fence: number) =>
    run(redis, renewHold, keys, { process, fence: LAST + fence, duration: DURATION });
  expect(await renew("b", 2)).toBeUndefined();
  await expire(queue);
  const lasts = async () => Number(await redis.hget(keys.holder, "until")) - DURATION;
  // The lease lasts from the instant that the reply tells.
  expect(Math.floor((await renew("a", 3)) ?? NaN)).toBe(await lasts());
  // The clock has been set back.
  await redis.hset(keys.holder, "until", String(Date.now() + 3 * DURATION));
  expect(await take(queue, "c")).toEqual({ ...first, fence: 4 });
});

test("a step of the clock ends no lease, and one that is over ends all the same", async () => {
  const queue = await newPartition();
  const { redis, keys } = queue;
  const HOUR = 3_600_000;
  const now = Date.now();
  const isTaken = async (until: number, past: number | "") => {
    await redis.hset(keys.holder, "holder", "a", "until", String(until));
    return (await take(queue, "b", "", past)).isOurs;
  };
  // Set forward by an hour; by the former clock, the lease is not over, and then it is.
  expect(await isTaken(now - HOUR + 1000, now - HOUR)).toBe(false);
  expect(await isTaken(now - HOUR, now - HOUR)).toBe(true);
  // It was renewed since.
  expect(await isTaken(now + DURATION, now - HOUR)).toBe(false);
  // Set back by an hour; one duration later, it is certain that nobody has renewed the lease.
  expect(await isTaken(now + HOUR + 1000, now + HOUR)).toBe(false);
  expect(await isTaken(now + HOUR + 1000, now)).toBe(true);
  // It was renewed since.
  expect(await isTaken(now + DURATION, now + HOUR)).toBe(false);
  // Who does not know the clock takes only what nobody holds.
  expect(await isTaken(1, "")).toBe(false);
  expect(await release(queue, "a", (await take(queue, "a")).fence)).toBe(true);
  expect(await take(queue, "b", "", "")).toMatchObject({ isOurs: true });
});

test("the connections of holders that did not release are listed until they are ended", async () => {
  const queue = await newPartition();
  await take(queue, "a");
  expect(await note(queue, "a", 1, "5 one")).toBe(true);
  await expire(queue);
  expect(await take(queue, "b")).toMatchObject({ fence: 2, stale: ["5 one"] });
  expect(await note(queue, "a", 1, "5 one")).toBe(false);
  // It dies before it has ended that connection. The next holder is told of it, too.
  await expire(queue);
  expect(await take(queue, "c")).toMatchObject({ fence: 3, stale: ["5 one"] });
  expect(await note(queue, "c", 3, "6 two")).toBe(true);
  await expire(queue);
  expect(await take(queue, "c")).toMatchObject({ fence: 3, stale: ["6 two"] });
  await release(queue, "c", 3);
  expect(await take(queue, "d")).toMatchObject({ fence: 4, stale: ["6 two"] });
});

test("the holder inherits what its predecessors had in flight, in order and first", async () => {
  const queue = await newPartition();
  const { redis, keys } = queue;
  await redis.xgroup("CREATE", keys.stream, "g", "0", "MKSTREAM");
  await queue.seed({ stream: [entry("a"), entry("b", { n: "2" }), entry("c"), entry("d")] });
  await redis.xreadgroup("GROUP", "g", "dead", "COUNT", 2, "STREAMS", keys.stream, ">");
  await redis.xreadgroup("GROUP", "g", "left", "COUNT", 1, "STREAMS", keys.stream, ">");
  await take(queue, "p", "g");
  const args = {
    process: "p",
    fence: LAST + 1,
    group: "g",
    consumer: "me",
    maxAttempts: 3,
    limit: 10,
  };
  const rows = [
    { orphan: "dead", counted: 1 },
    { orphan: "left", counted: 0 },
  ];
  expect(await run(redis, inherit, keys, { ...args, fence: LAST + 2 }, rows)).toMatchObject({
    isOurs: false,
  });
  const { entries, buried } = await run(redis, inherit, keys, args, rows);
  const told = entries.map(({ payload, attempts, group, isOrphan }) => {
    return [payload.toString(), attempts, group, isOrphan];
  });
  expect(told).toEqual([
    ["a", 1, "g", true],
    ["c", 0, undefined, false],
  ]);
  const pending = (await redis.xpending(keys.stream, "g", "-", "+", 10)) as string[][];
  // In the order of the stream, where the new entry of "a" is behind.
  expect(pending.map(([id, consumer]) => [id, consumer])).toEqual(
    entries.toReversed().map(({ entryId }) => [entryId, "me"]),
  );
  // The message that had killed a process three times is dead.
  expect(buried).toBe(1);
  const { dead = [], holder } = await queue.snapshot();
  expect(dead.map((letter) => letter.slice(1, 11))).toEqual([
    ["a", message("b", 1).address, "p", "b", "n", "3", "g", "g", "r", expect.any(String)],
  ]);
  expect(holder).toMatchObject({ consumer: "me" });

  const [first, second] = entries as [(typeof entries)[0], (typeof entries)[0]];
  const settling = { group: "g", consumer: "me", heldCount: 2, own: 1, delay: 0, reason: "busy" };
  const next = await run(redis, again, keys, { ...settling, entry: first.entryId });
  expect(next).toMatchObject({ attempts: 2, group: "g" });
  expect(failuresIn(next?.trailer ?? Buffer.alloc(0))).toMatchObject([
    { attempt: 1, reason: "its consumer died in delivery 1" },
    { attempt: 2, reason: "busy" },
  ]);
  expect(await run(redis, again, keys, { ...settling, entry: first.entryId })).toBeUndefined();
  // Entries that it leaves in flight are noted for the next holder, and do not count.
  await release(queue, "p", 1);
  expect(await take(queue, "q", "g")).toMatchObject({ fence: 2, orphans: ["=me"] });
  const more = { ...args, process: "q", fence: LAST + 2, consumer: "other" };
  const again2 = await run(redis, inherit, keys, more, [{ orphan: "me", counted: 0 }]);
  expect(again2.entries.map(({ payload, attempts }) => [payload.toString(), attempts])).toEqual([
    ["a", 2],
    ["c", second.attempts],
  ]);
});

test("with a full memory nothing is taken, and nothing inherited is lost", async () => {
  const server = await startOwnServer();
  const queue = await newPartition(server.url);
  const { redis, keys } = queue;
  await redis.xgroup("CREATE", keys.stream, "g", "0", "MKSTREAM");
  await queue.seed({ stream: [{ a: message("a", 1).address, p: "a" }] });
  await redis.xreadgroup("GROUP", "g", "dead", "STREAMS", keys.stream, ">");
  await take(queue, "p", "g");
  const before = await queue.snapshot();
  await redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  const args = {
    process: "p",
    fence: LAST + 1,
    group: "g",
    consumer: "me",
    maxAttempts: 3,
    limit: 10,
  };
  const rows = [{ orphan: "dead", counted: 1 }];
  await expect(run(redis, inherit, keys, args, rows)).rejects.toThrow("OOM");
  await expect(take(queue, "p", "g")).rejects.toThrow("OOM");
  expect(await queue.snapshot()).toEqual(before);
  await redis.config("SET", "maxmemory", "0");
  expect((await run(redis, inherit, keys, args, rows)).entries).toHaveLength(1);
});

test("a change holds messages back once a queue is consumed exclusively", async () => {
  const [fact, holding] = ["2:3:2:moving:1", "2:3:2:holding:1"];
  const begin = ({ redis, keys }: Moves, expected = "1:2:2:stable:1") =>
    run(redis, beginChange, keys, {
      fact,
      holding,
      expected,
      notice: keys.channel,
      timeout: 60_000,
    });
  const [none, one, late] = [await newMoves(), await newMoves(), await newMoves()];
  const before = await newPartition();
  for (const queue of [none, one, late, before]) await queue.seed({ partitions: "1:2:2:stable:1" });
  await none.seed({ members: ["mt:xx", "m:x"] });
  await one.seed({ members: ["mt:a", "mx:b"] });
  await late.redis.zadd(late.keys.members, Date.now() - 70_000, "x:b");
  expect(await begin(none, "1:9:9:stable:1")).toBe("1:2:2:stable:1");
  expect(await begin(none)).toBe(fact);
  expect(await begin(one)).toBe(holding);
  expect(await begin(late)).toBe(fact);
  // Nobody consumes it now.
  await before.redis.hset(before.keys.holder, "group", "g");
  expect(await begin(before)).toBe(holding);
  expect(await one.snapshot()).toMatchObject({ partitions: holding, channel: [holding] });
  // A reliable queue from which nobody takes; then one from which a process takes.
  const [idle, busy] = [await newMoves(), await newMoves()];
  for (const queue of [idle, busy]) {
    await queue.seed({ partitions: "1:2:2:stable:1", stream: [entry("a")] });
  }
  await idle.seed({ members: ["m:a:"] });
  await busy.seed({ members: ["m:a:", ":b:group%20mail"] });
  expect(await begin(idle)).toBe(holding);
  expect(await begin(busy)).toBe(fact);
});

test("the fence is the server's time, so it grows even where the last one was lost", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const micros = async () => {
    const [seconds = 0, rest = 0] = (await redis.time()).map(Number);
    return seconds * 1_000_000 + rest;
  };
  const fences = [];
  for (const process of ["a", "b", "c"]) {
    const earliest = await micros();
    const args = { process, duration: 0, group: "", past: Date.now() };
    const { fence } = await run(redis, hold, keys, args);
    expect(fence).toBeGreaterThanOrEqual(earliest);
    expect(fence).toBeLessThanOrEqual(await micros());
    expect(await redis.hget(keys.holder, "fence")).toBe(String(fence));
    fences.push(fence);
    if (process === "b") await redis.del(keys.holder);
  }
  expect(fences).toEqual(fences.toSorted((x, y) => x - y));
});

test("a fence is raised, and never lowered", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const raise = (fence: number) => run(redis, raiseFence, keys, { fence });
  for (const [fence, expected] of [
    [LAST, LAST],
    [LAST - 1, LAST],
    [LAST + 2, LAST + 2],
  ] as const) {
    await raise(fence);
    expect(await queue.snapshot()).toEqual({ holder: { fence: String(expected) } });
  }
  expect(await take(queue, "a")).toMatchObject({ isOurs: true, fence: 3 });
});

test("says which process has the lease, if one has", async () => {
  const queue = await newPartition();
  const { redis, keys } = queue;
  const told = () => run(redis, tellHolder, keys, {});
  expect(await told()).toBeUndefined();
  const { fence } = await take(queue, "a");
  expect(await told()).toBe("a");
  await release(queue, "a", fence);
  expect(await told()).toBeUndefined();
});

test("no consumer takes a partition whose flow has lanes; a change of the number does", async () => {
  const queue = await newPartition();
  const { redis, keys } = queue;
  await redis.hset(keys.flow, "kind", "lanes");
  await expect(take(queue, "a")).rejects.toThrow("LANES the flow of the queue has lanes");
  expect(await holderOf(queue)).toEqual({ fence: String(LAST) });
  expect(await take(queue, "change:7")).toMatchObject({ isOurs: true });
  await release(queue, "change:7", 1);
  await redis.hset(keys.flow, "kind", "paced");
  expect(await take(queue, "a")).toMatchObject({ isOurs: true });
});

test("a partition is held while a consumer's lease lasts", async () => {
  const queue = await newPartition();
  const held = () => run(queue.redis, isHeld, queue.keys, {});
  expect(await held()).toBe(false);
  await take(queue, "change:7");
  expect(await held()).toBe(false);
  await release(queue, "change:7", 1);
  await take(queue, "a");
  expect(await held()).toBe(true);
  await expire(queue);
  expect(await held()).toBe(false);
  await take(queue, "b");
  expect(await held()).toBe(true);
  await release(queue, "b", 3);
  expect(await held()).toBe(false);
});
