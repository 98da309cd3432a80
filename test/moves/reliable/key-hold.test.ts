import { describe, expect, test } from "vitest";
import { offerKeyed } from "../../../src/lua/delayed/offer-keyed.ts";
import { tidyAddresses, tidyBusinessKeys } from "../../../src/lua/delayed/tidy.ts";
import { sweep, transfer } from "../../../src/lua/delayed/transfer.ts";
import { pullOut, pullOutPage } from "../../../src/lua/partitions/pull-out.ts";
import { pushIn } from "../../../src/lua/partitions/push-in.ts";
import { makePlain } from "../../../src/lua/queue/make-plain.ts";
import { ack, giveBackEntries, retryLater } from "../../../src/lua/reliable/deliveries.ts";
import { clearRetries } from "../../../src/lua/reliable/retries.ts";
import { run } from "../../../src/lua/script.ts";
import {
  bytes,
  indexEntry,
  message,
  newMoves,
  packRetry,
  retryName,
  type Moves,
  type QueueState,
} from "../../helpers/moves.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { allTo } from "../../helpers/partitions.ts";
import { newStreams, newStreamsAt, rowsOf, type Streams } from "../../helpers/streams.ts";

/* A retrying message holds its business key: what becomes of the entry of the index. */

const FAR = 5_000_000_000_000;
const one = message("a", 1000, "k");
const newer = message("n", FAR, "k");
const gone = message("x", FAR, "k");

/** `one` waits for a retry in these groups. */
const retrying = (due: number, ...groups: string[]) => ({
  retries: groups.map((group) => [retryName(one, group), due] as const),
  retrying: Object.fromEntries(groups.map((group) => [retryName(one, group), packRetry(one, 1)])),
});

const entryOfOne = { a: one.address, p: one.payload, t: one.key };

const words = ([name, value]: [string, string]) => [name, bytes(value)];

/** Delivers `one`, which fails; returns the entry of its key. */
const fail = async (queue: Streams, columns: object = {}) => {
  await queue.redis.xadd(queue.keys.stream, "*", ...Object.entries(entryOfOne).flatMap(words));
  const ids = await queue.deliver("g", "c");
  const rows = rowsOf(ids, { own: 0, delay: 60_000, counted: 1, reason: "r", ...columns });
  const args = { channel: queue.keys.channel, group: "g", consumer: "c", heldCount: 1 };
  expect((await run(queue.redis, retryLater, queue.keys, args, rows)).settled).toEqual([true]);
  return (await queue.redis.hgetallBuffer(queue.keys.businessKeys))["k"]?.toString("latin1");
};

describe("when a delivery fails, the key points to the retry", () => {
  test.each<[string, QueueState, string]>([
    ["free", {}, indexEntry(one)],
    ["an entry that points to nothing", { businessKeys: { k: indexEntry(gone) } }, indexEntry(one)],
    ["foreign bytes", { businessKeys: { k: "what is this" } }, indexEntry(one)],
    [
      "an entry that points to a message with another key",
      {
        timeouts: [message("o", FAR, "other").delayed],
        businessKeys: { k: indexEntry(message("o", FAR)) },
      },
      indexEntry(one),
    ],
    [
      "held by a newer delayed message",
      { timeouts: [newer.delayed], businessKeys: { k: indexEntry(newer, 2, 7) } },
      indexEntry(newer, 2, 7),
    ],
    [
      "held by another retrying message",
      {
        retries: [[retryName(newer, "g"), FAR]],
        retrying: { [retryName(newer, "g")]: packRetry(newer, 1) },
        businessKeys: { k: indexEntry(newer) },
      },
      indexEntry(newer),
    ],
    [
      "held by this message, which another group retries",
      { ...retrying(FAR, "h"), businessKeys: { k: indexEntry(one) } },
      indexEntry(one),
    ],
  ])("%s", async (_, before, after) => {
    const queue = await newStreams("g", "h");
    await queue.seed(before);
    expect(await fail(queue)).toBe(after);
  });

  test("a message that is given back is ready, and its key free", async () => {
    const queue = await newStreams("g");
    await queue.redis.xadd(queue.keys.stream, "*", ...Object.entries(entryOfOne).flatMap(words));
    const rows = rowsOf(await queue.deliver("g", "c"), { own: 0, counted: 0, reason: "" });
    const args = { channel: queue.keys.channel, group: "g", consumer: "c", heldCount: 1 };
    await run(queue.redis, giveBackEntries, queue.keys, args, rows);
    expect(await queue.redis.exists(queue.keys.businessKeys)).toBe(0);
  });
});

describe.each([
  ["transfer", transfer],
  ["sweep", sweep],
] as const)("%s: a retry that becomes ready", (_, family) => {
  const move = ({ redis, keys }: Moves) => {
    const args = { mark: 0, limit: 100, grace: 0, claim: 0, task: "me", known: 0, makes: 1 };
    return run(redis, family.stream, keys, args);
  };

  test.each<[string, QueueState, QueueState["businessKeys"]]>([
    ["frees its key", { ...retrying(800, "g") }, undefined],
    ["frees its key, if all groups have it again", { ...retrying(800, "g", "h") }, undefined],
    [
      "leaves it to the retry of another group",
      {
        retries: [
          [retryName(one, "g"), 800],
          [retryName(one, "h"), FAR],
        ],
        retrying: retrying(0, "g", "h").retrying,
      },
      { k: indexEntry(one) },
    ],
  ])("%s", async (_what, before, after) => {
    const queue = await newMoves();
    await queue.seed({ groups: ["g", "h"], businessKeys: { k: indexEntry(one) }, ...before });
    await move(queue);
    expect((await queue.snapshot()).businessKeys).toEqual(after);
  });

  test("leaves it to a newer message", async () => {
    const queue = await newMoves();
    const businessKeys = { k: indexEntry(newer, 1) };
    await queue.seed({
      groups: ["g"],
      timeouts: [newer.delayed],
      businessKeys,
      ...retrying(800, "g"),
    });
    expect(await move(queue)).toMatchObject({ moved: 1 });
    expect((await queue.snapshot()).businessKeys).toEqual(businessKeys);
  });
});

test.each([
  ["list", transfer.list],
  ["stream", transfer.stream],
])("the last delayed message leaves the keys of retries alone; form %s", async (_, script) => {
  const queue = await newMoves();
  const businessKeys = { k: indexEntry(one) };
  const due = message("d", 900);
  await queue.seed({ groups: ["g"], timeouts: [due.delayed], businessKeys, ...retrying(FAR, "g") });
  const args = { mark: 0, limit: 100, grace: 0, claim: 0, task: "me", known: 0, makes: 0 };
  expect(await run(queue.redis, script, queue.keys, args)).toMatchObject({ moved: 1 });
  expect((await queue.snapshot()).businessKeys).toEqual(businessKeys);
});

test("tidying keeps the keys of retries, and drops those that point to nothing", async () => {
  const queue = await newMoves();
  const businessKeys = { k: indexEntry(one), "key of x": indexEntry(gone) };
  await queue.seed({ groups: ["g"], order: [gone.address], businessKeys, ...retrying(FAR, "g") });
  const task = { mark: 0, limit: 100, grace: 0, claim: 0, task: "me", known: 0, makes: 1 };
  const look = async () => (await run(queue.redis, sweep.stream, queue.keys, task)).untidy;
  expect(await look()).toEqual({ order: true, businessKeys: true, once: false });
  await run(queue.redis, tidyAddresses, queue.keys, { step: 10, thorough: 0 });
  expect(await look()).toEqual({ order: false, businessKeys: true, once: false });
  await run(queue.redis, tidyBusinessKeys, queue.keys, { cursor: "0", step: 100 });
  expect(await look()).toEqual({ order: false, businessKeys: false, once: false });
  expect((await queue.snapshot()).businessKeys).toEqual({ k: indexEntry(one) });
  await run(queue.redis, clearRetries, queue.keys, {});
  expect(await queue.snapshot()).toEqual({ groups: ["g"] });
});

test("an offer that is sent again while its message retries is stored once", async () => {
  const queue = await newMoves();
  const before = { groups: ["g"], businessKeys: { k: indexEntry(one) }, ...retrying(FAR, "g") };
  await queue.seed(before);
  const offer = { member: bytes(one.member), delay: 5, deadline: "", key: "k", maxWait: "" };
  for (const rule of ["ignore", "replace", "update"]) {
    const args = { channel: queue.keys.channel };
    const { results } = await run(queue.redis, offerKeyed, queue.keys, args, [{ ...offer, rule }]);
    // Its deadline is the one in its id.
    expect(results).toEqual([{ deadline: one.deadline, outcome: "added", holder: undefined }]);
  }
  expect(await queue.snapshot()).toEqual(before);
});

describe("between partitions", () => {
  const travelling = { own: 0, buckets: allTo(1) };
  const wanted = { id: "", key: "k", member: "" };

  test("all retries of a message leave by its key, and free it", async () => {
    const queue = await newMoves();
    await queue.seed({
      groups: ["g", "h"],
      businessKeys: { k: indexEntry(one) },
      ...retrying(FAR, "g", "h"),
    });
    const { rows } = await run(queue.redis, pullOut, queue.keys, travelling, [wanted]);
    expect(rows.map(({ kind }) => kind)).toEqual(["retry", "retry"]);
    expect(await queue.snapshot()).toEqual({ groups: ["g", "h"], journal: expect.anything() });
  });

  test("while one of them is left, the key finds it", async () => {
    const queue = await newMoves();
    await queue.seed({
      groups: ["g", "h"],
      businessKeys: { k: indexEntry(one) },
      ...retrying(FAR, "g", "h"),
    });
    const page = { ...travelling, cursor: Buffer.from("r"), limit: 1, maxBytes: 10_000 };
    for (const left of [{ k: indexEntry(one) }, undefined]) {
      const { rows, number } = await run(queue.redis, pullOutPage, queue.keys, page);
      expect(rows.length).toBe(1);
      expect((await queue.snapshot()).businessKeys).toEqual(left);
      await queue.redis.hdel(queue.keys.journal, "rows");
      expect(number).toBeGreaterThan(0);
    }
  });

  const arriving = (number: number) => ({
    args: { channel: "wake-ups", source: 0, number },
    rows: [
      {
        kind: "retry",
        score: FAR,
        name: bytes(retryName(one, "g")),
        value: bytes(packRetry(one, 1)),
      },
    ],
  });

  test.each<[string, QueueState, string]>([
    ["takes its key, if that is free", {}, indexEntry(one)],
    ["takes it from nothing", { businessKeys: { k: indexEntry(gone) } }, indexEntry(one)],
    [
      "leaves it to another message",
      { timeouts: [newer.delayed], businessKeys: { k: indexEntry(newer) } },
      indexEntry(newer),
    ],
  ])("a retry that arrives %s", async (_, before, after) => {
    const queue = await newMoves();
    await queue.seed({ groups: ["g"], ...before });
    const { args, rows } = arriving(1);
    expect(await run(queue.redis, pushIn, queue.keys, args, rows)).toBe(true);
    expect((await queue.snapshot()).businessKeys).toEqual({ k: after });
  });

  test("a delayed message that arrives with the key takes it from a retry", async () => {
    const queue = await newMoves();
    await queue.seed({
      groups: ["g"],
      businessKeys: { k: indexEntry(one) },
      ...retrying(FAR, "g"),
    });
    const behind = indexEntry(newer, 2, 7).slice(24);
    const row = { kind: "message", score: FAR, name: bytes(newer.member), value: bytes(behind) };
    const { args } = arriving(1);
    expect(await run(queue.redis, pushIn, queue.keys, args, [row])).toBe(true);
    expect((await queue.snapshot()).businessKeys).toEqual({ k: indexEntry(newer, 2, 7) });
  });
});

test("made plain, a message of two groups is one delayed message with its key, whatever the pages", async () => {
  const queue = await newMoves();
  await queue.seed({
    groups: ["g", "h"],
    businessKeys: { k: indexEntry(one) },
    retries: [
      [retryName(one, "g"), FAR],
      [retryName(one, "h"), FAR + 1],
    ],
    retrying: retrying(0, "g", "h").retrying,
  });
  const args = { channel: queue.keys.channel, limit: 1, timeout: 1000 };
  for (let i = 0; i < 3; i++) await run(queue.redis, makePlain, queue.keys, args);
  const delayed = message("a", FAR, "k");
  expect(await queue.snapshot()).toMatchObject({
    timeouts: [delayed.delayed],
    businessKeys: { k: indexEntry(delayed) },
  });
});

/** Commands that measure, those that run a script, and what Redis counts in two ways. */
const OTHERS: ReadonlySet<string> = new Set(["config", "info", "evalsha", "eval", "time", "xinfo"]);

/** How many more calls `b` has. */
const more = (a: Record<string, number>, b: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(b).flatMap(([name, calls]) =>
      calls === a[name] ? [] : [[name, calls - (a[name] ?? 0)]],
    ),
  );

test("without a key a retry and its return cost no command more; with one, few", async () => {
  const server = await startOwnServer();
  const count = async (key: string) => {
    const queue = await newStreamsAt(server.url);
    await queue.addGroup("g");
    const { redis, keys } = queue;
    const trailer = key === "" ? [] : ["t", key];
    await redis.xadd(keys.stream, "*", "a", bytes(one.address), "p", "a", ...trailer);
    const entries = await queue.deliver("g", "c");
    const used = async (act: () => Promise<unknown>) => {
      await redis.config("RESETSTAT");
      await act();
      const info = await redis.info("commandstats");
      const lines = info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm);
      const counts = Array.from(lines, ([, name = "", calls]) => [name, Number(calls)] as const);
      return Object.fromEntries(counts.filter(([name]) => !OTHERS.has(name)));
    };
    const args = { channel: keys.channel, group: "g", consumer: "c", heldCount: 1 };
    const columns = { own: 0, delay: 0, counted: 1, reason: "r" };
    const retried = await used(() => run(redis, retryLater, keys, args, rowsOf(entries, columns)));
    const task = { mark: 0, limit: 100, grace: 0, claim: 0, task: "me", known: 0, makes: 1 };
    const back = await used(() => run(redis, transfer.stream, keys, task));
    const acked = await used(async () => {
      const rows = rowsOf(await queue.deliver("g", "c"), { own: 1 });
      await run(redis, ack, keys, args, rows);
    });
    return { retried, back, acked };
  };
  const [plain, keyed] = [await count(""), await count("k")];
  expect(plain).toEqual({
    retried: {
      zrange: 2,
      publish: 1,
      xpending: 1,
      xrange: 1,
      hset: 2,
      hdel: 2,
      zadd: 2,
      xack: 2,
      xdel: 2,
    },
    back: { zrange: 2, hmget: 1, zrem: 2, hdel: 2, xadd: 1 },
    acked: { xreadgroup: 1, xpending: 1, xack: 1, xdel: 1 },
  });
  expect(more(plain.retried, keyed.retried)).toEqual({ hget: 1, hset: 1 });
  expect(more(plain.back, keyed.back)).toEqual({ hmget: 1, exists: 1, hdel: 1 });
  expect(keyed.acked).toEqual(plain.acked);
});
