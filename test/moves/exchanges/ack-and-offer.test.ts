import { expect, test } from "vitest";
import {
  ackAndOffer,
  ackAndOfferIntoPartition,
  rowsAsArgs,
} from "../../../src/lua/exchanges/ack-and-offer.ts";
import { asTarget } from "../../../src/lua/exchanges/putting.ts";
import { ack, ackAndNote, ackOnce } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import {
  asAddress,
  bytes,
  indexEntry,
  message,
  onceRecord,
  type Message,
} from "../../helpers/moves.ts";
import { newRedis } from "../../helpers/redis.ts";
import { scriptAt } from "../../helpers/script-at.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const NOW = 1_900_000_000_000;
const FAR = 5_000_000_000_000;
const [n, o] = [message("n", FAR, "key n"), message("o", FAR + 1)];

const next = (of: string, { member, deadline, key }: Message) => ({
  of,
  member: bytes(member),
  delay: "",
  deadline,
  newKey: key,
  rule: key === "" ? "" : "ignore",
  maxWait: "",
});

/** Acknowledges these entries, and offers what follows them. */
function acking(
  { redis, keys }: Streams,
  ids: readonly string[],
  rows: readonly ReturnType<typeof next>[],
  { group = "g", consumer = "c", toFact = "" } = {},
) {
  const acks = rowsAsArgs(
    ack,
    ids.map((entry) => ({ entry, own: 0 })),
  );
  const into = { toChannel: keys.channel, toElements: "addresses", toFact, toPartition: 0 };
  const args = { group, consumer, heldCount: 100, ...acks, ...into };
  const { ack: form } = toFact === "" ? ackAndOffer : ackAndOfferIntoPartition;
  return run(redis, form, { ...keys, ...asTarget(keys) }, args, rows);
}

const put = (...all: readonly { readonly deadline: number; readonly outcome?: string }[]) =>
  expect.objectContaining({
    results: all.map(({ deadline, outcome = "added" }) =>
      expect.objectContaining({ deadline, outcome }),
    ),
  }) as unknown;

test("both: the entry leaves, and the messages are there", async () => {
  const queue = await newStreams("g");
  await queue.add("a", "b");
  const [a = ""] = await queue.deliver("g", "c");
  expect(await acking(queue, [a], [next(a, n), next(a, o)])).toEqual({
    settled: [true],
    put: put(n, o),
  });
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b" }],
    inFlight: { g: { c: ["b"] } },
    timeouts: [n.delayed, o.delayed],
    order: [n, o].map(asAddress),
    businessKeys: { [n.key]: indexEntry(n) },
    channel: [String(n.deadline)],
  });
});

test("neither: what is another consumer's, was acknowledged, or is unknown", async () => {
  const queue = await newStreams("g");
  await queue.add("a", "b", "c");
  const [a = ""] = await queue.deliver("g", "c", 1);
  const [b = ""] = await queue.deliver("g", "other", 1);
  await acking(queue, [a], [next(a, o)]);
  const before = await queue.snapshot();
  for (const id of [a, b, "5-5"]) {
    expect(await acking(queue, [id], [next(id, n)])).toEqual({ settled: [false], put: undefined });
  }
  expect(await queue.snapshot()).toEqual(before);
});

test("several in one script: each has its own answer", async () => {
  const queue = await newStreams("g");
  await queue.add("a", "b", "c");
  const [a = "", b = "", c = ""] = await queue.deliver("g", "c");
  await queue.redis.xack(queue.keys.stream, "g", b);
  const held = message("h", FAR + 2, n.key);
  const rows = [next(a, n), next(b, o), next(c, held), next(c, message("p", FAR + 3))];
  expect(await acking(queue, [a, b, c], rows)).toEqual({
    settled: [true, false, true],
    put: put(n, { deadline: n.deadline, outcome: "existing" }, { deadline: FAR + 3 }),
  });
  expect(await queue.snapshot()).toMatchObject({
    stream: [{ p: "b" }],
    timeouts: [n.delayed, message("p", FAR + 3).delayed],
  });
});

test("an entry that another group needs stays", async () => {
  const queue = await newStreams("g", "h");
  await queue.add("a");
  const [a = ""] = await queue.deliver("g", "c");
  await acking(queue, [a], [next(a, o)]);
  expect(await queue.snapshot()).toMatchObject({ stream: [{ p: "a" }], timeouts: [o.delayed] });
});

test("what was handled is noted, if the script does", async () => {
  const queue = await newStreams("g");
  await queue.add("a");
  const [a = ""] = await queue.deliver("g", "c");
  const { redis, keys } = queue;
  const note = { address: bytes(n.address), key: "k", attempt: 1, took: 5 };
  const args = {
    group: "g",
    consumer: "c",
    heldCount: 1,
    process: "host/1",
    keepFor: 60_000,
    ...rowsAsArgs(ackAndNote, [{ entry: a, own: 0, ...note }]),
    toChannel: keys.channel,
    toElements: "addresses",
    toFact: "",
    toPartition: -1,
  };
  const reply = await run(redis, ackAndOffer.ackAndNote, { ...keys, ...asTarget(keys) }, args, [
    next(a, o),
  ]);
  expect(reply).toEqual({ settled: { settled: [true], refusal: undefined }, put: put(o) });
  expect(await redis.xlen(keys.handled)).toBe(1);
});

test.each([
  { kind: "an ordinary queue", form: ackAndOffer.ackOnce, toFact: "" },
  { kind: "a partition", form: ackAndOfferIntoPartition.ackOnce, toFact: "3:4:4:stable:1" },
])("the end of what was offered with once is noted, into $kind", async ({ form, toFact }) => {
  const queue = await newStreams("g");
  await queue.seed({ partitions: "3:4:4:stable:1" });
  await queue.add("a", "b", "c");
  const [a = "", b = "", c = ""] = await queue.deliver("g", "c");
  const { redis, keys } = queue;
  await redis.xack(keys.stream, "g", c);
  const ended = message("e", 1000, "key e", { once: 0 });
  const end = { key: ended.key, address: bytes(ended.address), keepKey: 5000 };
  const note = { own: 0, attempt: 1, took: "" };
  const ends = rowsAsArgs(ackOnce, [
    { entry: a, ...note, ...end },
    { entry: b, ...note, address: "", key: "k", keepKey: "" },
    // It is no longer in flight.
    { entry: c, ...note, ...end, key: "key c" },
  ]);
  const more = { process: "host/1", keepFor: 0, toChannel: keys.channel, toElements: "addresses" };
  const args = { group: "g", consumer: "c", heldCount: 3, ...more, ...ends, toFact };
  const into = { ...args, toPartition: 0 };
  const reply = await run(redis, scriptAt(NOW, form), { ...keys, ...asTarget(keys) }, into, [
    next(a, n),
    next(c, o),
  ]);
  expect(reply).toEqual({
    settled: { settled: [true, true, false], refusal: undefined },
    put: put(n),
  });
  const after = await queue.snapshot();
  expect(after.once).toEqual({ [ended.key]: onceRecord(ended, { at: NOW, keepFor: 5000 }) });
  expect(after.onceEnds).toEqual([[ended.key, NOW + 60_000]]);
  expect(await redis.exists(keys.handled)).toBe(0);
});

test("if Redis refuses an offer, nothing is acknowledged", async () => {
  const queue = await newStreams("g");
  await queue.add("a");
  const [a = ""] = await queue.deliver("g", "c");
  await queue.redis.set(queue.keys.order, "foreign");
  await expect(acking(queue, [a], [next(a, n), next(a, o)])).rejects.toThrow("WRONGTYPE");
  await queue.redis.del(queue.keys.order);
  expect(await queue.snapshot()).toEqual({ stream: [{ p: "a" }], inFlight: { g: { c: ["a"] } } });
});

test("a user who may not acknowledge offers nothing", async () => {
  const queue = await newStreams("g");
  await queue.add("a");
  const [a = ""] = await queue.deliver("g", "c");
  const user = `u-${queue.keys.ready}`;
  await queue.redis.acl("SETUSER", user, "on", "nopass", "~*", "&*", "+@all", "-xack");
  const limited = newRedis();
  await limited.auth(user, "any");
  await expect(acking({ ...queue, redis: limited }, [a], [next(a, o)])).rejects.toThrow(
    /NOPERM|can't run|ACL failure/,
  );
  await queue.redis.acl("DELUSER", user);
  expect(await queue.snapshot()).toEqual({ stream: [{ p: "a" }], inFlight: { g: { c: ["a"] } } });
});

test("into a partition, whose fact is checked there", async () => {
  const queue = await newStreams("g");
  await queue.seed({ partitions: "3:4:4:stable:1" });
  await queue.add("a");
  const [a = ""] = await queue.deliver("g", "c");
  const into = (toFact: string) => acking(queue, [a], [next(a, o)], { toFact });
  await expect(into("2:4:2:moving:1")).rejects.toThrow("TARGET 3:4:4:stable:1");
  expect((await queue.snapshot()).timeouts).toBeUndefined();
  expect(await into("3:4:4:stable:1")).toMatchObject({ settled: [true] });
});
