import { expect, test } from "vitest";
import { inherit } from "../../../src/lua/partitions/inherit.ts";
import { again, handOut } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { scriptAt } from "../../helpers/script-at.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

// A failed message stays in flight for the holder of a partition. All scripts run at instants of the test's own.

const NOW = 1_760_000_000_000;
const PAUSE = 5000;
const DIED = "its consumer died in delivery";

const failing = (
  { redis, keys }: Streams,
  entry: string,
  { at = Date.now(), delay = PAUSE, consumer = "c" } = {},
) =>
  run(redis, scriptAt(at, again), keys, {
    group: "g",
    consumer,
    heldCount: 1,
    entry,
    own: 1,
    delay,
    reason: "busy",
  });

const handing = (
  { redis, keys }: Streams,
  { entryId, heldBackUntil = 0 }: { entryId: string; heldBackUntil?: number | undefined },
  { at = NOW, consumer = "c" } = {},
) =>
  run(redis, scriptAt(at, handOut), keys, { group: "g", consumer, entry: entryId, heldBackUntil });

/** Inherits as the holder `consumer`, whose fence is 1. */
async function inheriting(
  { redis, keys }: Streams,
  orphan: string,
  { at = NOW, consumer = "heir", counted = 1, maxAttempts = 3 } = {},
) {
  await redis.hset(keys.holder, { holder: "p", fence: 1, orphans: orphan });
  const args = { process: "p", fence: 1, group: "g", consumer, maxAttempts, limit: 10 };
  return await run(redis, scriptAt(at, inherit), keys, args, [{ orphan, counted }]);
}

/** How often each entry in flight was delivered, as Redis counts it. */
async function deliveries({ redis, keys }: Streams): Promise<number[]> {
  const rows = await redis.xpending(keys.stream, "g", "-", "+", 10);
  return (rows as [string, string, number, number][]).map(([, , , count]) => count);
}

/** What the stream contains, without the holder. */
async function snapshot(queue: Streams) {
  const { holder: _, ...state } = await queue.snapshot();
  return state;
}

test("again: the entry says until when it is held back, and Redis counts no delivery of it", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add({ p: "a", n: "1", g: "g", u: "5" });
  await queue.add("b");
  await queue.deliver("g", "c", 1);
  const at = Date.now() + 0.25;
  const kept = await failing(queue, a, { at });
  const until = Math.ceil(at + PAUSE);
  expect(kept).toMatchObject({ attempts: 2, group: "g", heldBackUntil: until });
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b" }, { p: "a", n: "2", g: "g", u: String(until), f: "2: busy" }],
    inFlight: { g: { c: ["a"] } },
  });
  expect(await deliveries(queue)).toEqual([0]);
  // Sent again, it changes nothing.
  const before = await queue.snapshot();
  expect(await failing(queue, a, { at })).toBeUndefined();
  expect(await queue.snapshot()).toEqual(before);
});

test("again: without a pause the message can be handed out at once", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  await queue.deliver("g", "c");
  const at = Date.now();
  const kept = await failing(queue, a, { at, delay: 0 });
  expect(await handing(queue, kept ?? { entryId: "" }, { at })).toBe(0);
});

test("hand-out: not before the pause is over on the server's clock; then a delivery counts", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  await queue.deliver("g", "c");
  const kept = { entryId: a, heldBackUntil: NOW + PAUSE };
  const before = await queue.snapshot();
  expect(await handing(queue, kept)).toBe(PAUSE);
  expect(await handing(queue, kept, { at: NOW + PAUSE - 0.25 })).toBe(1);
  expect(await deliveries(queue)).toEqual([0]);
  expect(await handing(queue, kept, { at: NOW + PAUSE })).toBe(0);
  // Sent again, it counts no other.
  expect(await handing(queue, kept, { at: NOW + PAUSE })).toBe(0);
  expect(await deliveries(queue)).toEqual([2]);
  expect(await queue.snapshot()).toEqual(before);
});

test("hand-out: takes nothing from another consumer", async () => {
  const queue = await newStreams("g");
  const [a = "", b = ""] = await queue.add("a", "b");
  await queue.deliver("g", "other", 1);
  expect(await handing(queue, { entryId: a })).toBeUndefined();
  expect(await handing(queue, { entryId: b })).toBeUndefined();
  expect((await snapshot(queue)).inFlight).toEqual({ g: { other: ["a"] } });
  expect(await handing(await newStreams(), { entryId: "1-1" })).toBeUndefined();
});

test("inherit: in the order of the places, whoever had it in flight, and however often it failed", async () => {
  const queue = await newStreams("g");
  const [a = "", b = "", c = "", d = ""] = await queue.add("a", "b", "c", "d");
  await queue.deliver("g", "c", 3);
  await queue.redis.xclaim(queue.keys.stream, "g", "c", 0, b, "RETRYCOUNT", 0, "JUSTID");
  await queue.redis.xclaim(queue.keys.stream, "g", "c", 0, c, "RETRYCOUNT", 0, "JUSTID");
  await queue.deliver("g", "other");
  const again1 = await failing(queue, a, { at: Date.now() });
  await failing(queue, again1?.entryId ?? "", { at: Date.now() });
  // Of "other", which has died with it, a new entry is made. Both heirs find the same order.
  for (const [orphan, consumer] of [
    ["other", "c"],
    ["c", "heir"],
  ] as const) {
    const { entries } = await inheriting(queue, orphan, { consumer });
    expect(entries.map(({ payload }) => payload.toString())).toEqual(
      orphan === "c" ? ["a", "b", "c", "d"] : ["d"],
    );
  }
  expect(d).not.toBe("");
});

test("inherit: a message that is held back stays so, and nothing is counted, whoever has died", async () => {
  const queue = await newStreams("g");
  const until = String(NOW + PAUSE);
  const waits = { p: "a", n: "2", g: "g", u: until };
  await queue.add(waits);
  await queue.deliver("g", "dead");
  const { entries, buried } = await inheriting(queue, "dead");
  expect(buried).toBe(0);
  expect(entries).toMatchObject([{ attempts: 2, heldBackUntil: NOW + PAUSE, isOrphan: false }]);
  // The heir dies as well, and the next one leaves.
  await inheriting(queue, "heir", { consumer: "second" });
  await inheriting(queue, "second", { consumer: "third", counted: 0 });
  expect(await snapshot(queue)).toEqual({
    stream: [waits],
    inFlight: { g: { third: ["a"] } },
  });
});

test("inherit: when the pause is over, the death counts only if the message was handed out", async () => {
  const queue = await newStreams("g");
  const over = { n: "1", g: "g", u: String(NOW) };
  const [a = "", b = ""] = await queue.add(
    { p: "a", ...over },
    { p: "b", ...over },
    { p: "c", n: "1" },
  );
  await queue.deliver("g", "dead");
  await queue.redis.xclaim(queue.keys.stream, "g", "dead", 0, a, "RETRYCOUNT", 0, "JUSTID");
  const at = Date.now();
  await handing(queue, { entryId: b }, { consumer: "dead" });
  const { entries } = await inheriting(queue, "dead", { at });
  const counted = { n: "2", g: "g", d: "1", f: `2: ${DIED} 2` };
  expect(await snapshot(queue)).toMatchObject({
    stream: [
      { p: "a", n: "1" },
      { p: "b", ...counted },
      { p: "c", ...counted },
    ],
    inFlight: { g: { heir: ["a", "b", "c"] } },
  });
  // The heir hands out the second one only, and dies in its last delivery.
  const [, second] = entries;
  await handing(queue, second ?? { entryId: "" }, { consumer: "heir" });
  expect((await inheriting(queue, "heir", { at, consumer: "next" })).buried).toBe(1);
  expect(await snapshot(queue)).toMatchObject({
    stream: [
      { p: "a", n: "1" },
      { p: "c", ...counted },
    ],
    dead: [{ p: "b", n: "3" }],
  });
});

test("inherit: what a script has kept in flight and the group reads once more was not handed out", async () => {
  const queue = await newStreams("g");
  const [a = "", b = ""] = await queue.add("a", "b");
  await queue.deliver("g", "c");
  const at = Date.now();
  // The first one has failed, and the second one was in flight for a predecessor that died.
  await failing(queue, a, { at, delay: 0 });
  await queue.redis.xclaim(queue.keys.stream, "g", "dead", 0, b, "RETRYCOUNT", 1, "JUSTID");
  await inheriting(queue, "dead", { at, consumer: "c" });
  await queue.deliver("g", "c");
  expect(await deliveries(queue)).toEqual([1, 1]);
  const { entries } = await inheriting(queue, "c", { at: at + 1 });
  expect(entries.map(({ payload, attempts }) => `${String(payload)} ${attempts}`)).toEqual([
    "a 1",
    "b 1",
  ]);
  // The heir hands out the first one, and reads nothing more.
  await handing(queue, entries[0] ?? { entryId: "" }, { at: at + 1, consumer: "heir" });
  const next = await inheriting(queue, "heir", { at: at + 1, consumer: "next" });
  expect(next.entries.map(({ payload, attempts }) => `${String(payload)} ${attempts}`)).toEqual([
    "a 2",
    "b 1",
  ]);
});

test.each(["-5", "1.5", "inf", "nan", "1e300", "x", ""])(
  "inherit: %j in a foreign entry holds nothing back",
  async (u) => {
    const queue = await newStreams("g");
    await queue.add({ p: "a", u });
    await queue.deliver("g", "dead");
    const { entries } = await inheriting(queue, "dead", { at: Date.now() });
    expect(entries).toMatchObject([{ heldBackUntil: undefined, attempts: 1 }]);
    expect((await snapshot(queue)).stream).toEqual([
      { p: "a", n: "1", g: "g", d: "1", f: `1: ${DIED} 1` },
    ]);
  },
);
