import { expect, onTestFinished, test } from "vitest";
import {
  areRunning,
  revoke,
  seekDead,
  seekStream,
  stage,
  type FoundPlace,
} from "../../../src/lua/reliable/revoke.ts";
import { runningPage } from "../../../src/lua/reliable/in-flight-page.ts";
import { run } from "../../../src/lua/script.ts";
import { eventually } from "../../helpers/eventually.ts";
import {
  asAddress,
  asText,
  bytes,
  indexEntry,
  message,
  packRetry,
  retryName,
  waitingFor,
  type Message,
} from "../../helpers/moves.ts";
import { newRedis } from "../../helpers/redis.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

type Row = Partial<Record<"entries" | "letters" | "reason", string>>;

const byId = ({ address }: Message, row: Row = {}) => ({
  id: bytes(address),
  key: "",
  entries: "",
  letters: "",
  reason: "",
  ...row,
});
const byKey = (key: string, row: Row = {}) => ({
  id: "",
  key,
  entries: "",
  letters: "",
  reason: "",
  ...row,
});

const FIRST = { isFirst: 1, after: "", afterDead: "" };

const revokeIn = (
  { redis, keys }: Streams,
  rows: readonly ReturnType<typeof byId | typeof byKey>[],
  args = FIRST,
) => {
  const channels = { channel: keys.channel, notices: keys.notices };
  return run(redis, revoke, keys, { ...args, ...channels }, rows);
};
const stageIn = (
  { redis, keys }: Streams,
  rows: readonly ReturnType<typeof byId | typeof byKey>[],
  args = FIRST,
) => run(redis, stage, keys, args, rows);

/** Places in short: the stage, the group if it is for one, and how many deliveries were made. */
const told = (places: readonly FoundPlace[] | undefined) =>
  places?.map(({ stage: where, group, attempts }) =>
    [where, ...(group === undefined ? [] : [group]), attempts].join(" "),
  );

const LATE = 1_700_000_000_000;
const [a, b, c] = [message("a", LATE), message("b", LATE, "key"), message("c", LATE, "key c")];

/** An entry of a message. */
const entry = (
  { address, payload, key }: Message,
  more: Readonly<Record<string, string>> = {},
) => ({
  a: address,
  p: payload,
  ...(key !== "" && { t: key }),
  ...more,
});

/** What is told on the channel of notices. */
async function noticesOf({ keys }: Streams): Promise<() => Promise<unknown[]>> {
  const subscriber = newRedis();
  onTestFinished(() => subscriber.disconnect());
  const heard: unknown[] = [];
  subscriber.on("message", (_, text: string) => heard.push(JSON.parse(text)));
  await subscriber.subscribe(keys.notices);
  const publisher = newRedis();
  return async () => {
    await publisher.publish(keys.notices, '"mark"');
    await eventually(() => heard.at(-1) === "mark");
    return heard.slice(0, -1);
  };
}

test("nothing without a queue", async () => {
  const queue = await newStreams();
  expect(await revokeIn(queue, [byId(a), byKey("key")])).toEqual([[], []]);
  expect(await queue.snapshot()).toEqual({});
});

test("a delayed message goes, with its key", async () => {
  const queue = await newStreams("g");
  await queue.seed({
    timeouts: [a.delayed, b.delayed],
    order: [a, b].map(asAddress),
    businessKeys: { [b.key]: indexEntry(b) },
  });
  const before = await queue.snapshot();
  const rows = [byId(a), byKey(b.key)];
  const places = [a, b].map(({ address }) => [
    {
      stage: "delayed",
      address: bytes(address),
      group: undefined,
      attempts: 0,
      entryId: undefined,
    },
  ]);
  expect(await stageIn(queue, rows)).toEqual(places);
  expect(await queue.snapshot()).toEqual(before);
  expect(await revokeIn(queue, rows)).toEqual(places);
  expect(await queue.snapshot()).toEqual({ order: [a, b].map(asAddress) });
  expect(await revokeIn(queue, rows)).toEqual([[], []]);
});

test("one that waits for its turn goes, with its turn", async () => {
  const queue = await newStreams("g");
  const inLane = message("b", LATE, "key", { lane: "lane" });
  const { id, kept, turn } = waitingFor(inLane, "lane");
  await queue.seed({
    room: { [id]: kept },
    turns: [[turn, 0]],
    lanes: [["lane", 1]],
    flow: { kind: "lanes" },
    businessKeys: { [b.key]: indexEntry(b) },
  });
  expect((await stageIn(queue, [byId(b), byKey("key")])).map(told)).toEqual([
    ["waiting 0"],
    ["waiting 0"],
  ]);
  expect((await revokeIn(queue, [byId(b)])).map(told)).toEqual([["waiting 0"]]);
  expect(await queue.snapshot()).toEqual({ flow: { kind: "lanes" } });
});

test("retries go for every group, also one that waits for its turn", async () => {
  const queue = await newStreams("g", "h");
  await queue.seed({
    retries: [
      [retryName(b, "g"), 5e12],
      [retryName(b, "h"), 9e15 + 5e12],
      [retryName(a, "g"), 5e12],
    ],
    retrying: {
      [retryName(b, "g")]: packRetry(b, 1),
      [retryName(b, "h")]: packRetry(b, 2),
      [retryName(a, "g")]: packRetry(a, 1),
    },
    businessKeys: { [b.key]: indexEntry(b) },
  });
  expect((await stageIn(queue, [byKey("key")])).map(told)).toEqual([
    ["retrying g 1", "retrying h 2"],
  ]);
  expect((await revokeIn(queue, [byKey("key")])).map(told)).toEqual([
    ["retrying g 1", "retrying h 2"],
  ]);
  const { redis, keys } = queue;
  const left = [retryName(a, "g")];
  expect((await redis.zrangeBuffer(keys.retries, "0", "-1")).map(asText)).toEqual(left);
  expect((await redis.hkeysBuffer(keys.retrying)).map(asText)).toEqual(left);
  expect(await redis.exists(keys.businessKeys)).toBe(0);
});

test("an entry goes for every group; those that have it are told", async () => {
  const queue = await newStreams("g", "h", "i");
  const [first = "", second = ""] = await queue.add(entry(a), entry(b, { n: "2" }), entry(c));
  await queue.deliver("g", "one");
  await queue.deliver("h", "two", 1);
  await queue.redis.xack(queue.keys.stream, "h", first);
  const notices = await noticesOf(queue);

  const rows = [byId(a), byKey("key", { reason: "paid" })];
  const expected = [
    ["running g 1", "ready i 0"],
    ["running g 3", "ready h 2", "ready i 2"],
  ];
  expect((await stageIn(queue, rows)).map(told)).toEqual(expected);
  expect((await revokeIn(queue, rows)).map(told)).toEqual(expected);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "c", t: "key c", a: c.address }],
    inFlight: { g: { one: ["c"] } },
    revoked: { [`${first} g`]: '["one",""]', [`${second} g`]: '["one","paid"]' },
  });
  expect(await queue.redis.ttl(queue.keys.revoked)).toBeGreaterThan(3590);
  expect(await notices()).toEqual([
    [first, "g", "one", ""],
    [second, "g", "one", "paid"],
  ]);
});

test("what nobody has read is ready for all; what nobody needs is gone", async () => {
  const queue = await newStreams("g", "h");
  const [first = "", , third = ""] = await queue.add(entry(a), entry(b), entry(c, { g: "g" }));
  expect((await stageIn(queue, [byId(a), byId(b), byId(c)])).map(told)).toEqual([
    ["ready 0"],
    ["ready 0"],
    ["ready g 0"],
  ]);
  for (const group of ["g", "h"]) {
    await queue.deliver(group, "one");
    await queue.redis.xack(queue.keys.stream, group, first, third);
  }
  expect(await stageIn(queue, [byId(a), byId(c)])).toEqual([[], []]);
  // Redis may have refused to delete it: that is not for this script to do.
  await revokeIn(queue, [byId(a)]);
  expect((await queue.snapshot()).stream).toHaveLength(3);
});

test("without groups, entries are ready", async () => {
  const queue = await newStreams();
  await queue.add(entry(a), entry(b, { g: "only" }));
  expect((await revokeIn(queue, [byId(a), byKey("key")])).map(told)).toEqual([
    ["ready 0"],
    ["ready only 0"],
  ]);
  expect(await queue.snapshot()).toEqual({});
});

test("what is held back, or was put aside, has not begun", async () => {
  const queue = await newStreams("g");
  const until = String(Date.now() + 60_000);
  const ids = await queue.add(entry(a, { n: "1", g: "g", u: until, o: "1-1" }), entry(b), entry(c));
  const [held = "", aside = ""] = ids;
  await queue.deliver("g", "one");
  // As `again` and `hand-out` leave them.
  const claim = ["XCLAIM", queue.keys.stream, "g", "one", "0"] as const;
  for (const id of [held, aside]) await queue.redis.call(...claim, id, "RETRYCOUNT", "0", "JUSTID");
  const notices = await noticesOf(queue);
  const rows = [byId(a), byKey("key"), byId(c)];
  const places = (await revokeIn(queue, rows)).map(told);
  expect(places).toEqual([["retrying g 1"], ["ready g 0"], ["running g 1"]]);
  // All are told, but nobody waits for a handler that does not run.
  expect(await notices()).toHaveLength(3);
  expect((await queue.snapshot()).revoked).toEqual({ [`${ids[2]} g`]: '["one",""]' });
});

test("one that a script has kept in flight begins with its second delivery", async () => {
  const queue = await newStreams("g");
  const [id = ""] = await queue.add(entry(a, { n: "1", g: "g", o: "1-1" }));
  await queue.deliver("g", "one");
  expect((await stageIn(queue, [byId(a)])).map(told)).toEqual([["retrying g 1"]]);
  const claim = ["XCLAIM", queue.keys.stream, "g", "one", "0", id] as const;
  await queue.redis.call(...claim, "RETRYCOUNT", "2", "JUSTID");
  expect((await stageIn(queue, [byId(a)])).map(told)).toEqual([["running g 2"]]);
});

test("dead letters go; one with the id of an entry hides nothing", async () => {
  const queue = await newStreams("g");
  const [id = ""] = await queue.add(entry(b));
  const letter = ["a", a.address, "p", "a", "n", "3", "g", "g", "r", "no"].map(bytes);
  await queue.redis.xadd(queue.keys.dead, id, ...letter);
  const other = ["a", b.address, "p", "b", "n", "5", "g", "h", "r", "no", "t", "key"].map(bytes);
  await queue.redis.xadd(queue.keys.dead, "*", ...other);
  const rows = [byId(a), byKey("key")];
  expect((await stageIn(queue, rows)).map(told)).toEqual([["dead g 3"], ["ready 0", "dead h 5"]]);
  expect((await revokeIn(queue, rows)).map(told)).toEqual([["dead g 3"], ["ready 0", "dead h 5"]]);
  expect(await queue.snapshot()).toEqual({});
});

test("a message that two rows name belongs to the first", async () => {
  const queue = await newStreams("g");
  await queue.seed({ timeouts: [c.delayed], businessKeys: { [c.key]: indexEntry(c) } });
  await queue.add(entry(b));
  const rows = [byKey("key"), byId(b), byId(c), byKey("key c"), byId(c)];
  expect((await revokeIn(queue, rows)).map(told)).toEqual([["ready 0"], [], ["delayed 0"], [], []]);
});

test("slots are free at once: the lane goes on", async () => {
  const queue = await newStreams("g");
  const { id, kept, turn } = waitingFor(a, "lane");
  const trailer = "\xff\x01\x05\x04\0\0\0lane";
  await queue.seed({
    room: { [id]: kept },
    turns: [[turn, 0]],
    lanes: [["lane", 1e12 + 1]],
    resting: [["lane", 9e12]],
    flow: { kind: "lanes", look: "9000000000000" },
  });
  await queue.add({ a: c.address, p: "c", t: trailer, l: "2" });
  expect((await revokeIn(queue, [byId(c)])).map(told)).toEqual([["ready 0"]]);
  const state = await queue.snapshot();
  expect(state.lanes).toEqual([["lane", 1]]);
  expect(state).not.toHaveProperty("resting");
  expect(state.channel).toHaveLength(1);
});

test("a message that was moved on time is found by its id among many", async () => {
  const queue = await newStreams("g");
  const now = message("n", Date.now());
  await queue.add(entry(now));
  await queue.redis.eval(
    `for i = 1, 300 do redis.call("XADD", KEYS[1], "*", "a", string.rep("x", 24), "p", i) end`,
    1,
    queue.keys.stream,
  );
  expect((await revokeIn(queue, [byId(now)])).map(told)).toEqual([["ready 0"]]);
  // For a key, and for what is not there, all have to be seen.
  expect(await revokeIn(queue, [byKey("key"), byId(message("m", Date.now()))])).toEqual([
    undefined,
    undefined,
  ]);
});

test("with several groups an id is looked for everywhere", async () => {
  const queue = await newStreams("g", "h");
  await queue.seed({
    retries: [[retryName(a, "g"), 5e12]],
    retrying: { [retryName(a, "g")]: packRetry(a, 1) },
  });
  await queue.redis.eval(
    `for i = 1, 150 do redis.call("XADD", KEYS[1], "*", "a", string.rep("x", 24), "p", i) end`,
    1,
    queue.keys.stream,
  );
  const [id = ""] = await queue.add(entry(a, { g: "h" }));
  const { redis, keys } = queue;
  expect(await revokeIn(queue, [byId(a)])).toEqual([undefined]);
  expect([await redis.xlen(keys.stream), await redis.zcard(keys.retries)]).toEqual([151, 1]);

  const page = { after: "", limit: 120, maxBytes: 1e6 };
  const first = await run(redis, seekStream, keys, page, [byId(b), byId(a)]);
  expect(first).toMatchObject({ isMore: true, found: [] });
  const second = await run(redis, seekStream, keys, { ...page, after: first.after }, [
    byId(b),
    byId(a),
  ]);
  expect(second).toEqual({ after: id, isMore: false, found: [{ row: 1, entryId: id }] });
  // What came since is looked at by the last script.
  await queue.add(entry(b));
  const rows = [byId(a, { entries: ` ${id}` }), byId(b)];
  const places = await revokeIn(queue, rows, { isFirst: 0, after: id, afterDead: "" });
  expect(places.map(told)).toEqual([["retrying g 1", "ready h 0"], ["ready 0"]]);
});

test("what a pass has found, and is gone or another message, is not found", async () => {
  const queue = await newStreams("g");
  const [first = "", second = ""] = await queue.add(entry(a), entry(b));
  await queue.deliver("g", "one");
  await queue.redis.xack(queue.keys.stream, "g", first);
  await queue.redis.xdel(queue.keys.stream, first);
  const rows = [byId(a, { entries: `${first} ${second}`, letters: second })];
  const args = { isFirst: 0, after: second, afterDead: second };
  expect(await revokeIn(queue, rows, args)).toEqual([[]]);
  expect((await queue.snapshot()).stream).toHaveLength(1);
});

test("a pass stops at its bytes, and finds each row's entries", async () => {
  const queue = await newStreams("g");
  const big = { ...entry(a), p: "x".repeat(1000) };
  const ids = await queue.add(big, entry(b), { p: "foreign" }, entry(b, { t: "other" }), big);
  await queue.redis.xadd(queue.keys.stream, "*", "foreign", "fields");
  const { redis, keys } = queue;
  const rows = [byKey("key"), byId(a), byKey("none"), byId(b)];
  const all = await run(redis, seekStream, keys, { after: "", limit: 100, maxBytes: 1e6 }, rows);
  expect(all.isMore).toBe(false);
  expect(all.found).toEqual([
    { row: 1, entryId: ids[0] },
    { row: 3, entryId: ids[1] },
    { row: 0, entryId: ids[1] },
    { row: 3, entryId: ids[3] },
    { row: 1, entryId: ids[4] },
  ]);
  const some = await run(redis, seekStream, keys, { after: "", limit: 100, maxBytes: 500 }, rows);
  expect(some.isMore).toBe(true);
  const none = await run(redis, seekDead, keys, { after: "", limit: 100, maxBytes: 500 }, rows);
  expect(none).toEqual({ after: "", isMore: false, found: [] });
});

test("a pass over the dead letters", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  const words = ["a", b.address, "p", "b", "n", "5", "g", "h", "r", "no", "t", "key"].map(bytes);
  const id = await redis.xadd(keys.dead, "*", ...words);
  await redis.xadd(keys.dead, "*", "foreign", "fields");
  const page = { after: "", limit: 100, maxBytes: 1e6 };
  const found = await run(redis, seekDead, keys, page, [byId(a), byKey("key")]);
  expect(found).toMatchObject({ isMore: false, found: [{ row: 1, entryId: id }] });
});

test("a handler runs until its consumer says that it has ended, or is silent", async () => {
  const queue = await newStreams("g");
  const [first = "", second = ""] = await queue.add(entry(a), entry(b));
  const slow = "delayline:60000:5:00000000-0000-4000-8000-000000000000";
  const quick = "delayline:1:5:00000000-0000-4000-8000-000000000000";
  await queue.deliver("g", slow, 1);
  await queue.deliver("g", quick, 1);
  await revokeIn(queue, [byId(a), byId(b)]);
  const { redis, keys } = queue;
  const rows = [first, second, "1-1"].map((id) => ({ entry: id, group: "g" }));
  const ask = () => run(redis, areRunning, keys, { leaseTimeout: 60_000 }, rows);
  await eventually(async () => (await ask())[1] === false);
  expect(await ask()).toEqual([true, false, false]);
  // Whatever order the rows have, a group is asked for once.
  const turned = rows.toReversed();
  expect(await run(redis, areRunning, keys, { leaseTimeout: 60_000 }, turned)).toEqual([
    false,
    false,
    true,
  ]);
  await redis.hdel(keys.revoked, `${first} g`);
  expect(await ask()).toEqual([false, false, false]);
  await redis.hset(keys.revoked, `${first} g`, "no JSON", `${second} g`, "1");
  expect(await ask()).toEqual([false, false, false]);
});

test("what runs, page by page", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add(entry(a), entry(b, { n: "2" }), entry(c, { g: "h" }), entry(c));
  await queue.deliver("g", "one");
  const claim = ["XCLAIM", queue.keys.stream, "g", "one", "0"] as const;
  await queue.redis.call(...claim, ids[3] ?? "", "RETRYCOUNT", "0", "JUSTID");
  const { redis, keys } = queue;
  const first = await run(redis, runningPage, keys, { group: "g", after: "", limit: 2 });
  expect(first.next).toBe(ids[1]);
  expect(first.found).toEqual([
    {
      address: bytes(a.address),
      key: undefined,
      consumer: "one",
      since: expect.any(Number),
      attempt: 1,
    },
    {
      address: bytes(b.address),
      key: "key",
      consumer: "one",
      since: expect.any(Number),
      attempt: 3,
    },
  ]);
  const rest = await run(redis, runningPage, keys, { group: "g", after: ids[1] ?? "", limit: 5 });
  expect(rest).toEqual({ next: undefined, found: [] });
});
