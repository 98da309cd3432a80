import { expect, test } from "vitest";
import { NO_NUMBERS } from "../../../src/nouns/numbers.ts";
import { forecast, isUnchanged, stats, textOf } from "../../../src/lua/queue/stats.ts";
import { giveBackEntries } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { message, newMoves, retryFor, type Moves } from "../../helpers/moves.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const FAR = 5_000_000_000_000;

const [a, b, c] = [message("a", 1000), message("b", 2000), message("c", FAR)];
const retry = (due: number, of = a) => {
  const { name, value } = retryFor(of, "g", 1);
  return { retries: [[name, due]], retrying: { [name]: value } } as const;
};

const read = ({ redis, keys }: Pick<Moves, "redis" | "keys">) =>
  run(redis, stats, keys, { channel: keys.channel, shares: 1 });
const spread = (
  { redis, keys }: Pick<Moves, "redis" | "keys">,
  spans: { from: number; step: number; count: number },
) => run(redis, forecast, keys, spans);

const NOTHING = {
  isReliable: false,
  isPaused: false,
  ...NO_NUMBERS,
  consumers: 0,
  // The test's own subscription.
  listeners: 1,
};

test("an empty queue: nothing but Redis's clock", async () => {
  const queue = await newMoves();
  const { serverTime, ...others } = await read(queue);
  expect(others).toEqual(NOTHING);
  const [seconds] = await queue.redis.time();
  expect(Math.abs(serverTime - Number(seconds) * 1000)).toBeLessThan(10_000);
});

test("a plain queue: delayed, overdue, ready and unreadable messages, and the pause", async () => {
  const queue = await newMoves();
  await queue.seed({
    timeouts: [a.delayed, b.delayed, c.delayed],
    ready: ["x", "y"],
    quarantine: ["?"],
    unreadable: ["!", "!!"],
    paused: "1",
  });
  const before = await queue.snapshot();
  expect(await read(queue)).toMatchObject({
    ...NOTHING,
    isPaused: true,
    delayed: 3,
    overdue: 2,
    ready: 2,
    quarantined: 3,
    nextDeadline: 1000,
  });
  expect(await queue.snapshot()).toEqual(before);
});

test("retries count as overdue, and may be the next deadline", async () => {
  const queue = await newMoves();
  await queue.seed({ timeouts: [b.delayed], ...retry(1500) });
  expect(await read(queue)).toMatchObject({
    delayed: 1,
    retries: 1,
    overdue: 2,
    nextDeadline: 1500,
  });
});

test("a deadline that no clock reaches is infinite, and not overdue", async () => {
  const queue = await newMoves();
  await queue.seed({ timeouts: [[a.member, Infinity]] });
  expect(await read(queue)).toMatchObject({ delayed: 1, overdue: 0, nextDeadline: Infinity });
});

test("one group: entries are ready or in flight, and finished ones are counted", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  expect(await read(queue)).toMatchObject({ isReliable: true, ready: 0, readied: 0, finished: 0 });
  const ids = await queue.add("a", "b", "c", "d");
  await queue.seed({ ready: ["listed"], dead: [["1-0", "p", "x"]] });
  // Nobody has read yet.
  const unread = { ready: 5, inFlight: 0, consumers: 0, dead: 1, readied: undefined };
  expect(await read(queue)).toMatchObject(unread);
  await queue.deliver("g", "one", 2);
  await queue.deliver("g", "two", 1);
  expect(await read(queue)).toMatchObject({
    ready: 2,
    inFlight: 3,
    consumers: 2,
    readied: 4,
    finished: 0,
  });
  // The message that was read last is finished first.
  await redis.xack(keys.stream, "g", String(ids[2]));
  await redis.xdel(keys.stream, String(ids[2]));
  expect(await read(queue)).toMatchObject({ ready: 2, inFlight: 2, readied: 4, finished: 1 });
  await queue.add("e");
  expect(await read(queue)).toMatchObject({ ready: 3, inFlight: 2, readied: 5, finished: 1 });
});

test("a message that is given back has become ready once; one that failed becomes ready again", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add("a", "b", "c");
  await queue.deliver("g", "one", 3);
  const give = (entry: string | undefined, counted: 0 | 1) =>
    run(
      queue.redis,
      giveBackEntries,
      queue.keys,
      { channel: queue.keys.channel, group: "g", consumer: "one", heldCount: 3 },
      [{ entry: entry ?? "", own: 0, counted, reason: "" }],
    );
  expect(await give(ids[0], 0)).toEqual([true]);
  expect(await give(ids[1], 0)).toEqual([true]);
  // Sent again, it changes nothing.
  expect(await give(ids[1], 0)).toEqual([false]);
  expect(await read(queue)).toMatchObject({ ready: 2, inFlight: 1, readied: 3, finished: 0 });
  expect(await give(ids[2], 1)).toEqual([true]);
  await queue.deliver("g", "two");
  await queue.redis.xack(queue.keys.stream, "g", ...(await idsOf(queue)));
  await queue.redis.xtrim(queue.keys.stream, "MAXLEN", 0);
  expect(await read(queue)).toMatchObject({ ready: 0, inFlight: 0, readied: 4, finished: 4 });
});

async function idsOf({ redis, keys }: Streams): Promise<string[]> {
  return (await redis.xrange(keys.stream, "-", "+")).map(([id]) => id);
}

test("several groups count each their own", async () => {
  const queue = await newStreams("slow", "fast");
  await queue.add("a", "b", "c");
  await queue.deliver("fast", "one", 2);
  expect(await read(queue)).toMatchObject({ ready: 3 + 1, inFlight: 2, readied: 3, finished: 0 });
  // A late group does not see earlier messages, not even those that the slow group still has to read.
  await queue.redis.xgroup("CREATE", queue.keys.stream, "late", "$");
  expect(await read(queue)).toMatchObject({ ready: 3 + 1 + 0, inFlight: 2 });
});

test("several groups, where Redis does not say how far one is behind: counts what it may still read", async () => {
  const queue = await newStreams("slow", "fast");
  const { redis, keys } = queue;
  await queue.add("a", "b", "c");
  await queue.deliver("fast", "one", 3);
  const found = (await redis.xrange(keys.stream, "-", "+")).map(([id]) => id);
  await redis.xack(keys.stream, "fast", ...found);
  // An entry is gone that neither group has reached.
  const [gone] = [await redis.xadd(keys.stream, "*", "p", "x")];
  await redis.xadd(keys.stream, "*", "p", "for slow", "g", "slow");
  await redis.xdel(keys.stream, String(gone));
  expect(await read(queue)).toMatchObject({ ready: 4 + 0, inFlight: 0 });
  await redis.xadd(keys.stream, "*", "p", "for both");
  expect(await read(queue)).toMatchObject({ ready: 5 + 1 });
});

test("a stream without a group: all of it is ready", async () => {
  const queue = await newMoves();
  await queue.seed({ stream: [{ p: "a" }, { p: "b" }] });
  expect(await read(queue)).toMatchObject({ isReliable: true, ready: 2, consumers: 0 });
});

test("the oldest ready message is the one that waits longest for any group", async () => {
  const queue = await newStreams("slow", "fast");
  const { redis, keys } = queue;
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1000;
  for (const age of [60_000, 40_000, 20_000]) await redis.xadd(keys.stream, now - age, "p", "x");
  const age = async () => Math.round(((await read(queue)).oldestReadyAge ?? -1) / 10_000) * 10_000;
  expect(await age()).toBe(60_000);
  await queue.deliver("fast", "one", 3);
  await queue.deliver("slow", "one", 1);
  expect(await age()).toBe(40_000);
  await queue.deliver("slow", "one", 2);
  expect((await read(queue)).oldestReadyAge).toBeUndefined();
});

test("the oldest in flight is the one that was handed out first to any group", async () => {
  const queue = await newStreams("g", "h");
  const { redis, keys } = queue;
  const ids = await queue.add("kept", "a", "b");
  await queue.deliver("g", "one");
  await queue.deliver("h", "two");
  const setAge = (group: string, i: number, ...words: (string | number)[]) =>
    redis.call("XCLAIM", keys.stream, group, "one", 0, String(ids[i]), ...words, "JUSTID");
  // In strict order a consumer keeps a message that it has not handed out.
  await setAge("g", 0, "IDLE", 900_000, "RETRYCOUNT", 0);
  await setAge("g", 1, "IDLE", 400_000);
  await setAge("h", 2, "IDLE", 500_000);
  const age = async () => Math.floor(((await read(queue)).oldestInFlightAge ?? -1) / 60_000);
  expect(await age()).toBe(8);
  await redis.xack(keys.stream, "h", ...ids);
  expect(await age()).toBe(6);
  await redis.xack(keys.stream, "g", ...ids.slice(1));
  expect((await read(queue)).oldestInFlightAge).toBeUndefined();
  // However many those are.
  const more = await queue.add(...Array.from({ length: 101 }, (_, i) => `aside ${i}`));
  await queue.deliver("g", "one");
  const aside = more.slice(0, -1);
  await redis.xclaim(keys.stream, "g", "one", 0, ...aside, "RETRYCOUNT", 0, "JUSTID");
  expect(await age()).toBe(0);
});

test("a forecast counts messages and retries span by span, from the first instant to just before the last", async () => {
  const queue = await newMoves();
  await queue.seed({
    timeouts: [
      message("a", 999).delayed,
      message("b", 1000).delayed,
      message("c", 1099).delayed,
      message("d", 1100).delayed,
      message("e", 1300).delayed,
    ],
    ...retry(1250),
  });
  expect(await spread(queue, { from: 1000, step: 100, count: 3 })).toEqual([2, 1, 1]);
  expect(await spread(queue, { from: 1300, step: 1, count: 2 })).toEqual([1, 0]);
  const plain = await newMoves();
  await plain.seed({ timeouts: [c.delayed] });
  expect(await spread(plain, { from: FAR - 1, step: 1, count: 3 })).toEqual([0, 1, 0]);
});

test("a queue is unchanged as long as it has the same numbers, and no partitions", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const { channel } = keys;
  const isSame = async (numbers: Awaited<ReturnType<typeof read>>) =>
    await run(redis, isUnchanged, keys, { channel, shares: 1, known: textOf(numbers) });
  const empty = await read(queue);
  expect(await isSame(empty)).toBe(true);

  await queue.seed({ timeouts: [a.delayed, c.delayed], ready: ["1"], ...retry(FAR) });
  expect(await isSame(empty)).toBe(false);
  const full = await read(queue);
  expect(await isSame(full)).toBe(true);
  // A number that becomes another one, one that becomes unknown, and one that is known of streams alone.
  await redis.rpush(keys.ready, "2");
  expect(await isSame(full)).toBe(false);
  await redis.del(keys.timeouts, keys.ready, keys.retries);
  expect(await isSame(full)).toBe(false);
  expect(await isSame(empty)).toBe(true);
  await redis.xgroup("CREATE", keys.stream, "g", "0", "MKSTREAM");
  expect(await isSame(empty)).toBe(false);
  const stream = await read(queue);
  expect(stream).toMatchObject({ isReliable: true, readied: 0 });
  expect(await isSame(stream)).toBe(true);
  await redis.set(keys.partitions, "1:2:1:a:0");
  expect(await isSame(stream)).toBe(false);
});
