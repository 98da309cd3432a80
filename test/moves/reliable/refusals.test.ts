import { expect, test } from "vitest";
import { ack, bury, giveBackEntries, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { reclaim } from "../../../src/lua/reliable/reclaim.ts";
import { trim } from "../../../src/lua/reliable/groups.ts";
import { run } from "../../../src/lua/script.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newStreamsAt, rowsOf, type Streams } from "../../helpers/streams.ts";

const REFUSED = /NOPERM|can't run this command|no permissions to run/;

type Move = (queue: Streams, ids: readonly string[]) => Promise<unknown>;

const mine = { group: "g", consumer: "c", heldCount: 100 };

/** Moves that settle all entries, and what the queue contains afterwards. */
const MOVES: Readonly<Record<string, [move: Move, after: object]>> = {
  ack: [({ redis, keys }, ids) => run(redis, ack, keys, mine, rowsOf(ids, { own: 0 })), {}],
  "give-back-entries": [
    ({ redis, keys }, ids) =>
      run(
        redis,
        giveBackEntries,
        keys,
        { ...mine, channel: "elsewhere" },
        rowsOf(ids, { own: 0, counted: 1, reason: "r" }),
      ),
    { stream: ["a", "b"].map((p) => ({ p, n: "1", g: "g", f: "1: r" })) },
  ],
  bury: [
    ({ redis, keys }, ids) => run(redis, bury, keys, mine, rowsOf(ids, { own: 0, reason: "r" })),
    { dead: ["a", "b"].map((p) => ({ p, n: "1", g: "g", r: "r", f: "1: r" })) },
  ],
  "retry-later": [
    ({ redis, keys }, ids) =>
      run(
        redis,
        retryLater,
        keys,
        { ...mine, channel: "elsewhere" },
        rowsOf(ids, { own: 0, delay: 1000, counted: 1, reason: "r" }),
      ),
    { retries: ["a", "b"].map((p) => ({ p, n: 1, g: "g", f: "1: r" })) },
  ],
  reclaim: [
    ({ redis, keys }) =>
      run(redis, reclaim, keys, {
        ...mine,
        channel: "elsewhere",
        idle: 0,
        maxAttempts: 9,
        limit: 100,
      }),
    {
      stream: ["a", "b"].map((p) => ({
        p,
        n: "1",
        g: "g",
        d: "1",
        f: "1: its consumer died in delivery 1",
      })),
    },
  ],
};

async function inFlight(): Promise<[queue: Streams, ids: string[]]> {
  const server = await startOwnServer();
  const queue = await newStreamsAt(server.url, "g");
  const ids = await queue.add("a", "b");
  await queue.deliver("g", "c");
  return [queue, ids];
}

test.each(Object.entries(MOVES))(
  "%s: succeeds when memory is full",
  async (_name, [move, after]) => {
    const [queue, ids] = await inFlight();
    await queue.redis.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1");
    await expect(queue.redis.set("k", "v")).rejects.toThrow("OOM");
    await move(queue, ids);
    await queue.redis.config("SET", "maxmemory", "0");
    expect(await queue.snapshot()).toEqual(after);
  },
);

test.each(
  Object.entries(MOVES).flatMap(([name, [move]]) =>
    // An ack needs only the first of these; see below.
    ["xack", ...(name === "ack" ? [] : ["xdel"])].map((command) => [name, command, move] as const),
  ),
)("%s: writes nothing if %s is not permitted", async (_name, command, move) => {
  const [queue, ids] = await inFlight();
  const before = await queue.snapshot();
  await queue.redis.call("ACL", "SETUSER", "default", `-${command}`);
  await expect(move(queue, ids)).rejects.toThrow(REFUSED);
  expect(await queue.snapshot()).toEqual(before);
});

test("ack: acknowledges even if xdel is not permitted, and the entries stay until they are trimmed", async () => {
  const [queue, ids] = await inFlight();
  const { redis, keys } = queue;
  const { stream } = await queue.snapshot();
  await redis.call("ACL", "SETUSER", "default", "-xdel");
  expect(await run(redis, ack, keys, mine, rowsOf(ids, { own: 0 }))).toEqual([true, true]);
  expect(await queue.snapshot()).toEqual({ stream });
  await expect(run(redis, trim, keys, { limit: 100 })).rejects.toThrow(REFUSED);
  await redis.call("ACL", "SETUSER", "default", "+xdel");
  expect(await run(redis, trim, keys, { limit: 100 })).toBe(2);
  expect(await queue.snapshot()).toEqual({});
});

test("ack: many entries go one by one if xtrim is not permitted", async () => {
  const server = await startOwnServer();
  const queue = await newStreamsAt(server.url, "g");
  const ids = await queue.add(...Array.from({ length: 30 }, (_, i) => `m${i}`));
  await queue.deliver("g", "c");
  await queue.redis.call("ACL", "SETUSER", "default", "-xtrim");
  const settled = await run(queue.redis, ack, queue.keys, mine, rowsOf(ids.slice(1), { own: 0 }));
  expect(settled).toEqual(ids.slice(1).map(() => true));
  expect(await run(queue.redis, ack, queue.keys, mine, rowsOf(ids, { own: 0 }))).toContain(true);
  expect(await queue.snapshot()).toEqual({});
});
