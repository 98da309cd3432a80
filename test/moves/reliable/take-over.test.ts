import { expect, test } from "vitest";
import { takeOver, type TakeOverReply } from "../../../src/lua/reliable/take-over.ts";
import { run } from "../../../src/lua/script.ts";
import { packAddress } from "../../../src/queue/message/message.ts";
import { bytes, newMoves, type Fields, type Moves } from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";

const before: Fields = { a: "somewhere", p: "before" };
const ids = ["a", "b", "c"].map((letter) => Buffer.alloc(16, letter));

async function take({ redis, keys }: Moves, makes = 1): Promise<TakeOverReply> {
  const rows = ids.map((id) => ({ id }));
  return await run(redis, takeOver, keys, { makes }, rows);
}

/** The payloads and ids of the entries, whose deadlines must be now. */
async function entriesOf(queue: Moves, since: number): Promise<string[]> {
  const { stream = [] } = await queue.snapshot();
  return stream.map(({ a = "", p = "", ...rest }) => {
    expect(rest).toEqual({});
    if (a === before["a"]) return p;
    const address = bytes(a);
    const deadline = Number(address.readBigUInt64BE(0));
    expect(deadline).toBeGreaterThanOrEqual(since);
    const id = ids.find((each) => packAddress(deadline, each).equals(address));
    return `${p} by ${id?.toString().at(0)}`;
  });
}

async function serverTime({ redis }: Moves): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

test("moves the LIST to the stream, in order", async () => {
  const queue = await newMoves();
  const since = await serverTime(queue);
  await queue.seed({ ready: ["first", "second"], stream: [before] });
  expect(await take(queue)).toEqual({ moved: 2, areMore: false, isPlain: false });
  expect(await entriesOf(queue, since)).toEqual(["before", "first by a", "second by b"]);
  expect(Object.keys(await queue.snapshot())).toEqual(["stream"]);
});

test("moves as many payloads as there are rows; the others stay", async () => {
  const queue = await newMoves();
  const since = await serverTime(queue);
  await queue.seed({ ready: ["first", "second", "third", "fourth"] });
  expect(await take(queue)).toEqual({ moved: 3, areMore: true, isPlain: false });
  expect(await entriesOf(queue, since)).toEqual(["first by a", "second by b", "third by c"]);
  expect(await queue.snapshot()).toMatchObject({ ready: ["fourth"] });
});

test("moves nothing from an empty LIST, and creates no stream", async () => {
  const queue = await newMoves();
  expect(await take(queue)).toEqual({ moved: 0, areMore: false, isPlain: false });
  expect(await queue.redis.exists(queue.keys.stream)).toBe(0);
});

test("leaves the LIST of a plain queue alone if it may not create the stream", async () => {
  const queue = await newMoves();
  await queue.seed({ ready: ["first"] });
  expect(await take(queue, 0)).toEqual({ moved: 0, areMore: true, isPlain: true });
  expect(await queue.snapshot()).toEqual({ ready: ["first"] });
  await queue.seed({ stream: [before] });
  expect(await take(queue, 0)).toEqual({ moved: 1, areMore: false, isPlain: false });
});

test("after a refused append, what was appended before is trimmed", async () => {
  const queue = await newMoves();
  const since = await serverTime(queue);
  const last = 2n ** 64n - 1n;
  await queue.redis.xadd(
    queue.keys.stream,
    `${last}-${last - 2n}`,
    ...Object.entries(before).flat(),
  );
  await queue.seed({ ready: ["first", "second", "third"] });
  expect(await take(queue)).toEqual({ moved: 2, areMore: true, isPlain: false });
  const entries = ["before", "first by a", "second by b"];
  expect(await entriesOf(queue, since)).toEqual(entries);
  await expect(take(queue)).rejects.toThrow("last possible ID");
  expect(await entriesOf(queue, since)).toEqual(entries);
  expect(await queue.snapshot()).toMatchObject({ ready: ["third"] });
});

test("changes nothing if a key has another type", async () => {
  const queue = await newMoves();
  await queue.seed({ ready: ["first"] });
  await queue.redis.set(queue.keys.stream, "no stream");
  await expect(take(queue)).rejects.toThrow("WRONGTYPE");
  expect(await queue.snapshot()).toEqual({ ready: ["first"] });

  const other = await newMoves();
  await other.redis.set(other.keys.ready, "no list");
  await expect(take(other)).rejects.toThrow("WRONGTYPE");
  expect(await other.redis.get(other.keys.ready)).toBe("no list");
  expect(await other.redis.exists(other.keys.stream)).toBe(0);
});

test("appends nothing if trimming is not permitted", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  await queue.seed({ ready: ["first"] });
  await queue.redis.acl("SETUSER", "default", "-ltrim");
  await expect(take(queue)).rejects.toThrow();
  await queue.redis.acl("SETUSER", "default", "+ltrim");
  expect(await queue.snapshot()).toEqual({ ready: ["first"] });
});

test("moves the LIST even if memory is full", async () => {
  const server = await startOwnServer();
  const queue = await newMoves(server.url);
  const since = await serverTime(queue);
  await queue.seed({ ready: ["first"] });
  await queue.redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
  expect(await take(queue)).toEqual({ moved: 1, areMore: false, isPlain: false });
  await queue.redis.config("SET", "maxmemory", "0");
  expect(await entriesOf(queue, since)).toEqual(["first by a"]);
});
