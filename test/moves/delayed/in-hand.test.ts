import { expect, test } from "vitest";
import { pacedTransfer } from "../../../src/lua/delayed/transfer.ts";
import { freeSlots, holdLane, setFlow } from "../../../src/lua/queue/flow.ts";
import { ack, giveBackEntries, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { reclaim } from "../../../src/lua/reliable/reclaim.ts";
import { run } from "../../../src/lua/script.ts";
import { message, newMoves, type Moves } from "../../helpers/moves.ts";
import { scriptAt } from "../../helpers/script-at.ts";

const NOW = 5_000_000_000_000;
const DUE = 1_000_000;
const GROUP = "g";

/** A reliable queue with lanes, and `count` due messages in each of these. */
async function newLanes(
  flow: Readonly<Record<string, string>>,
  counts: Readonly<Record<string, number>>,
) {
  const queue = await newMoves();
  await queue.redis.xgroup("CREATE", queue.keys.stream, GROUP, "0", "MKSTREAM");
  const messages = Object.entries(counts).flatMap(([lane, count]) =>
    Array.from({ length: count }, (_, i) => message(`${lane}${i}`, DUE + i, "", { lane })),
  );
  await queue.seed({
    timeouts: messages.map(({ delayed }) => delayed),
    flow: { kind: "lanes", ahead: "100", lane: "0 0 1 0", ...flow },
  });
  return queue;
}

const moveAt = ({ redis, keys }: Moves, instant: number) =>
  run(redis, scriptAt(instant, pacedTransfer.stream), keys, {
    limit: 100,
    grace: 0,
    claim: 0,
    task: "task",
    known: 0,
    makes: 1,
    mark: 0,
    shares: 1,
    arriving: "",
  });

/** Delivers what is ready; returns the payloads by the ids of their entries. */
async function deliver({ redis, keys }: Moves, consumer = "c"): Promise<Map<string, string>> {
  const from = ["STREAMS", keys.stream, ">"] as const;
  const found = (await redis.xreadgroup("GROUP", GROUP, consumer, ...from)) as
    [string, [string, string[]][]][] | null;
  const entries = found?.[0]?.[1] ?? [];
  return new Map(entries.map(([id, fields]) => [id, fields[fields.indexOf("p") + 1] ?? ""]));
}

const acknowledge = ({ redis, keys }: Moves, ids: Iterable<string>) =>
  run(
    redis,
    ack,
    keys,
    { group: GROUP, consumer: "c", heldCount: 10 },
    [...ids].map((entry) => ({ entry, own: 0 })),
  );

const freeAt = ({ redis, keys }: Moves, instant: number, lane: string) =>
  run(redis, scriptAt(instant, freeSlots), keys, { channel: keys.channel }, [{ name: lane }]);

const SLOTS = { lane: "0 0 1 2", slots: "1" };

test("of each lane only so many messages are in hand, until one is settled", async () => {
  const queue = await newLanes(SLOTS, { a: 5, b: 3 });
  expect(await moveAt(queue, NOW)).toMatchObject({ moved: 4 });
  const given = await deliver(queue);
  expect([...given.values()]).toEqual(["a0", "b0", "a1", "b1"]);
  expect(await moveAt(queue, NOW + 500)).toMatchObject({ moved: 0, next: NOW + 1000 });
  const [first = ""] = given.keys();
  await acknowledge(queue, [first]);
  await freeAt(queue, NOW + 501, "a");
  expect(await moveAt(queue, NOW + 501)).toMatchObject({ moved: 1 });
  expect([...(await deliver(queue)).values()]).toEqual(["a2"]);
  expect(await moveAt(queue, NOW + 502)).toMatchObject({ moved: 0 });
});

test("an entry that was settled takes no slot, though nobody has looked for it", async () => {
  const queue = await newLanes({ ...SLOTS, ahead: "1" }, { a: 3 });
  expect(await moveAt(queue, NOW)).toMatchObject({ moved: 1 });
  await acknowledge(queue, (await deliver(queue)).keys());
  expect(await moveAt(queue, NOW + 5)).toMatchObject({ moved: 1 });
  await deliver(queue);
  // One is in flight, and two may be.
  expect(await moveAt(queue, NOW + 10)).toMatchObject({ moved: 1 });
});

test("in a plain queue nothing is in hand: no limit of it holds anything back", async () => {
  const queue = await newLanes({ lane: "0 0 1 1", slots: "1", most: "2" }, { a: 5 });
  await queue.redis.del(queue.keys.stream);
  const args = { limit: 100, grace: 0, claim: 0, task: "task", known: 0, makes: 1, mark: 0 };
  const move = scriptAt(NOW, pacedTransfer.list);
  const shared = { shares: 1, arriving: "" };
  expect(await run(queue.redis, move, queue.keys, { ...args, ...shared })).toMatchObject({
    moved: 5,
  });
});

test("if nobody tells that a message was settled, the mover sees it a second later", async () => {
  const queue = await newLanes(SLOTS, { a: 3 });
  await moveAt(queue, NOW);
  await acknowledge(queue, (await deliver(queue)).keys());
  expect(await moveAt(queue, NOW + 999)).toMatchObject({ moved: 0 });
  expect(await moveAt(queue, NOW + 1000)).toMatchObject({ moved: 1 });
});

test("who settles a message wakes the mover only if others wait", async () => {
  const queue = await newLanes(SLOTS, { a: 2 });
  await moveAt(queue, NOW);
  const before = await queue.snapshot();
  await freeAt(queue, NOW, "a");
  expect(await queue.snapshot()).toEqual(before);
});

test("a slot passes to the entry that follows: given back, or reclaimed from a dead consumer", async () => {
  const queue = await newLanes(SLOTS, { a: 4 });
  const { redis, keys } = queue;
  await moveAt(queue, NOW);
  const [first = "", second = ""] = (await deliver(queue)).keys();
  const args = { channel: keys.channel, group: GROUP, consumer: "c", heldCount: 2 };
  const back = [{ entry: first, own: 0, counted: 0, reason: "" }];
  expect(await run(redis, giveBackEntries, keys, args, back)).toEqual([true]);
  await freeAt(queue, NOW + 1, "a");
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 0 });
  const reclaiming = { channel: keys.channel, group: GROUP, consumer: "c", idle: 0 };
  await run(redis, reclaim, keys, { ...reclaiming, maxAttempts: 9, limit: 100 });
  await freeAt(queue, NOW + 2, "a");
  expect(await moveAt(queue, NOW + 2)).toMatchObject({ moved: 0 });
  const again = await deliver(queue, "other");
  expect([...again.values()].toSorted()).toEqual(["a0", "a1"]);
  expect(again.has(second)).toBe(false);
});

test("a retry gives its slot back, and waits for another one", async () => {
  const queue = await newLanes({ lane: "0 0 1 1", slots: "1" }, { a: 2 });
  const { redis, keys } = queue;
  await moveAt(queue, NOW);
  const [first = ""] = (await deliver(queue)).keys();
  const args = { channel: keys.channel, group: GROUP, consumer: "c", heldCount: 1 };
  const row = { entry: first, own: 0, delay: 10, counted: 0, reason: "" };
  await run(redis, scriptAt(NOW + 1, retryLater), keys, args, [row]);
  await freeAt(queue, NOW + 1, "a");
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 1 });
  expect([...(await deliver(queue)).values()]).toEqual(["a1"]);
  // Now it waits, and has its place before those that are due later.
  expect(await moveAt(queue, NOW + 20)).toMatchObject({ moved: 0 });
  expect(await redis.zcard(keys.turns)).toBe(1);
});

test("an entry that several groups read is in hand until the last of them has finished it", async () => {
  const queue = await newLanes({ lane: "0 0 1 1", slots: "1" }, { a: 2 });
  const { redis, keys } = queue;
  await redis.xgroup("CREATE", keys.stream, "slow", "0");
  await moveAt(queue, NOW);
  await acknowledge(queue, (await deliver(queue)).keys());
  await freeAt(queue, NOW + 1, "a");
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 0 });
  await redis.xgroup("DESTROY", keys.stream, "slow");
  await freeAt(queue, NOW + 2, "a");
  expect(await moveAt(queue, NOW + 2)).toMatchObject({ moved: 1 });
});

test("of the whole queue only so many are in hand, whatever their lanes", async () => {
  const queue = await newLanes({ most: "3" }, { a: 4, b: 4 });
  expect(await moveAt(queue, NOW)).toMatchObject({ moved: 3, next: NOW + 5 });
  const [first = ""] = (await deliver(queue)).keys();
  expect(await moveAt(queue, NOW + 5)).toMatchObject({ moved: 0 });
  await acknowledge(queue, [first]);
  await freeAt(queue, NOW + 6, "");
  expect(await moveAt(queue, NOW + 6)).toMatchObject({ moved: 1 });
});

test.each(["hands", "stream"] as const)(
  "if somebody deletes the %s, the lanes go on",
  async (key) => {
    const queue = await newLanes(SLOTS, { a: 4 });
    await moveAt(queue, NOW);
    await deliver(queue);
    await queue.redis.del(queue.keys[key]);
    expect(await moveAt(queue, NOW + 1000)).toMatchObject({ moved: 2 });
  },
);

test("what is settled leaves the hands, also if nobody waits any more", async () => {
  const queue = await newLanes({ lane: "0 0 1 3", slots: "1" }, { a: 2, b: 2, c: 2 });
  await moveAt(queue, NOW);
  expect(await queue.redis.zcard(queue.keys.hands)).toBe(6);
  await acknowledge(queue, (await deliver(queue)).keys());
  expect(await moveAt(queue, NOW + 10)).toMatchObject({ moved: 0, next: Infinity });
  expect(await queue.redis.exists(queue.keys.hands)).toBe(0);
});

test("a flow without such a limit forgets what is in hand, and so does what is given back later", async () => {
  const queue = await newLanes(SLOTS, { a: 2 });
  const { redis, keys } = queue;
  await moveAt(queue, NOW);
  const [first = ""] = (await deliver(queue)).keys();
  await run(redis, setFlow, keys, {
    channel: keys.channel,
    kind: "none",
    step: 0,
    burst: 0,
    declared: "",
    isEmpty: 0,
    ahead: 100,
    most: 0,
    lane: "0 0 1 0",
    rates: 0,
    slots: 0,
  });
  const args = { channel: keys.channel, group: GROUP, consumer: "c", heldCount: 2 };
  await run(redis, giveBackEntries, keys, args, [{ entry: first, own: 0, counted: 0, reason: "" }]);
  expect(await redis.exists(keys.flow, keys.hands)).toBe(0);
});

test("a lane that is held rests until then, and the others go on", async () => {
  const queue = await newLanes({}, { a: 2 });
  const { redis, keys } = queue;
  const holdAt = (instant: number, lane: string, duration: number) =>
    run(redis, scriptAt(instant, holdLane), keys, { name: lane, duration });
  expect(await holdAt(NOW, "a", 500)).toBe(true);
  await queue.seed({ timeouts: [message("b0", DUE, "", { lane: "b" }).delayed] });
  expect(await moveAt(queue, NOW)).toMatchObject({ moved: 1, next: NOW + 500 });
  expect([...(await deliver(queue)).values()]).toEqual(["b0"]);
  // A shorter one changes nothing, a longer one does.
  await holdAt(NOW + 100, "a", 100);
  await holdAt(NOW + 100, "a", 1000);
  expect(await moveAt(queue, NOW + 1099)).toMatchObject({ moved: 0, next: NOW + 1100 });
  expect(await moveAt(queue, NOW + 1100)).toMatchObject({ moved: 2 });
  expect(await redis.hkeys(keys.flow)).toEqual(expect.not.arrayContaining(["holds", "hold:a"]));
});

test("if a slot of a lane is freed that is held, it goes on when the hold ends", async () => {
  const queue = await newLanes(SLOTS, { a: 3 });
  const { redis, keys } = queue;
  await moveAt(queue, NOW);
  await run(redis, scriptAt(NOW, holdLane), keys, { name: "a", duration: 20 });
  await acknowledge(queue, (await deliver(queue)).keys());
  await freeAt(queue, NOW + 1, "a");
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 0, next: NOW + 20 });
  expect(await moveAt(queue, NOW + 20)).toMatchObject({ moved: 1 });
});

test("a hold outlasts another flow with lanes, and a slot that is freed; it ends with the lanes", async () => {
  const queue = await newLanes(SLOTS, { a: 4 });
  const { redis, keys } = queue;
  await moveAt(queue, NOW);
  const given = await deliver(queue);
  await run(redis, scriptAt(NOW, holdLane), keys, { name: "a", duration: 10_000 });
  await acknowledge(queue, given.keys());
  await freeAt(queue, NOW + 1, "a");
  expect(await moveAt(queue, NOW + 1)).toMatchObject({ moved: 0 });
  const set = (kind: string) =>
    run(redis, scriptAt(NOW + 2, setFlow), keys, {
      channel: keys.channel,
      kind,
      step: 0,
      burst: 0,
      declared: "",
      isEmpty: 0,
      ahead: 50,
      most: 0,
      lane: "0 0 1 0",
      rates: 0,
      slots: 0,
    });
  await set("lanes");
  expect(await moveAt(queue, NOW + 5000)).toMatchObject({ moved: 0, next: NOW + 10_000 });
  await set("none");
  expect(await moveAt(queue, NOW + 5000)).toMatchObject({ moved: 2, next: Infinity });
  expect(await redis.exists(keys.flow)).toBe(0);
});

test("there is no lane to hold in a queue without lanes", async () => {
  const { redis, keys, snapshot, seed } = await newMoves();
  await seed({ flow: { kind: "paced", step: "1000", burst: "1" } });
  const before = await snapshot();
  expect(await run(redis, holdLane, keys, { name: "a", duration: 5 })).toBe(false);
  expect(await snapshot()).toEqual(before);
});
