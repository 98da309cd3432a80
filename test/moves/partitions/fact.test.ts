import { expect, test } from "vitest";
import { attend, type Attendance } from "../../../src/lua/partitions/attend.ts";
import { advanceFact, changeFact, createFact, readFact } from "../../../src/lua/partitions/fact.ts";
import { run } from "../../../src/lua/script.ts";
import { newMoves, type Moves } from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";

const [first, second, third] = ["1:2:2:stable:1", "2:3:2:moving:1", "10:3:3:stable:1"];

/** The queue's channel stands in for the fact's channel, so that the snapshot shows the published notice. */
const noticeOf = ({ keys }: Moves): { notice: string } => ({ notice: keys.channel });
const create = ({ redis, keys }: Moves, fact: string, notice = keys.channel): Promise<string> =>
  run(redis, createFact, keys, { fact, notice });
const advance = (queue: Moves, fact: string): Promise<string> =>
  run(queue.redis, advanceFact, queue.keys, { fact, ...noticeOf(queue) });
const change = (queue: Moves, expected: string, fact: string): Promise<string> =>
  run(queue.redis, changeFact, queue.keys, { expected, fact, ...noticeOf(queue) });
const read = ({ redis, keys }: Moves): Promise<string | undefined> =>
  run(redis, readFact, keys, {});

test("the first fact stays", async () => {
  const queue = await newMoves();
  expect(await read(queue)).toBeUndefined();
  expect(await create(queue, first)).toBe(first);
  expect(await create(queue, second)).toBe(first);
  expect(await read(queue)).toBe(first);
  expect(await queue.snapshot()).toEqual({ partitions: first, channel: [first] });
});

test("a later fact replaces it, compared as numbers; an earlier one does not", async () => {
  const queue = await newMoves();
  expect(await advance(queue, second)).toBe(second);
  expect(await advance(queue, second.replace("moving", "stable"))).toBe(second);
  expect(await advance(queue, third)).toBe(third);
  expect(await advance(queue, second)).toBe(third);
  expect(await queue.snapshot()).toEqual({ partitions: third, channel: [second, third] });
});

test("the fact changes only from the expected one", async () => {
  const queue = await newMoves();
  expect(await change(queue, first, second)).toBe("");
  await create(queue, first);
  expect(await change(queue, second, third)).toBe(first);
  expect(await change(queue, first, second)).toBe(second);
  expect(await change(queue, first, second)).toBe(second);
  expect(await queue.snapshot()).toEqual({ partitions: second, channel: [first, second] });
});

test("bytes that are not a fact are replaced; another type is refused", async () => {
  const queue = await newMoves();
  await queue.seed({ partitions: "what is this" });
  expect(await create(queue, first)).toBe("what is this");
  expect(await advance(queue, first)).toBe(first);
  const other = await newMoves();
  await other.redis.rpush(other.keys.partitions, "no text");
  await expect(advance(other, first)).rejects.toThrow("WRONGTYPE");
  await expect(read(other)).rejects.toThrow("WRONGTYPE");
});

test("a user who may not publish writes it all the same", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  await queue.redis.acl("SETUSER", "default", "-publish");
  expect(await create(queue, first)).toBe(first);
  await queue.redis.acl("SETUSER", "default", "+publish");
  expect(await queue.snapshot()).toEqual({ partitions: first });
});

const TIMEOUT = 60_000;
const attending = ({ redis, keys }: Moves, member: string, gone = 0): Promise<Attendance> =>
  run(redis, attend, keys, { member, timeout: TIMEOUT, gone });
async function come(...args: Parameters<typeof attending>) {
  const { fact, members } = await attending(...args);
  return { fact, members: members.map(({ member }) => member) };
}

test("processes come and go, and those not seen lately are dropped", async () => {
  const queue = await newMoves();
  const { redis, keys } = queue;
  const [seconds] = await redis.time();
  const now = Number(seconds) * 1000;
  await redis.zadd(keys.members, now - TIMEOUT - 2000, "old", now - TIMEOUT / 2, "here");
  await redis.zadd(keys.members, now + 2 * TIMEOUT, "of the future", "inf", "for ever");
  expect(await come(queue, "me")).toEqual({ fact: undefined, members: ["here", "me"] });
  const [here, me] = (await attending(queue, "me")).members;
  expect(here?.idle).toBeGreaterThanOrEqual(TIMEOUT / 2);
  expect(me?.idle).toBe(0);
  expect(Number(await redis.zscore(keys.members, "me"))).toBeGreaterThanOrEqual(now);
  expect(await redis.pttl(keys.members)).toBeGreaterThan(9 * TIMEOUT);
  await create(queue, first);
  expect(await come(queue, "here", 1)).toEqual({ fact: first, members: ["me"] });
  expect(await come(queue, "me", 1)).toEqual({ fact: first, members: [] });
  expect(await redis.exists(keys.members)).toBe(0);
});

test("attending is refused where the members are of another type, and not when memory is full", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  await queue.redis.set(queue.keys.members, "no ZSET");
  await expect(come(queue, "me")).rejects.toThrow("WRONGTYPE");
  await queue.redis.del(queue.keys.members);
  await queue.redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  expect(await come(queue, "me")).toEqual({ fact: undefined, members: ["me"] });
});
