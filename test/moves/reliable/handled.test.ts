import { expect, test } from "vitest";
import { ack, ackAndNote } from "../../../src/lua/reliable/deliveries.ts";
import { handledPage, handledSince } from "../../../src/lua/reliable/handled.ts";
import { run } from "../../../src/lua/script.ts";
import { bytes, message } from "../../helpers/moves.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const [a, b] = [message("a", 1000, "key of a"), message("b", 2000)];
const HOUR = 3_600_000;

const noting = (
  { redis, keys }: Streams,
  rows: readonly { entry: string; address: Buffer | ""; key?: string; attempt?: number }[],
  { group = "g", consumer = "c", keepFor = HOUR } = {},
) => {
  const args = { group, consumer, heldCount: 100, process: "host-1/42", keepFor };
  const whole = rows.map((row) => ({ own: 0, key: "", attempt: 1, took: 5, ...row }));
  return run(redis, ackAndNote, keys, args, whole);
};

const find = ({ redis, keys }: Streams, wanted: Buffer | "", key = "", from = "-") =>
  run(redis, handledPage, keys, { wanted, key, before: "", from, limit: 100 });

/** Two entries in flight for `c` in group `g`. */
async function delivered(...groups: string[]) {
  const queue = await newStreams("g", ...groups);
  await queue.add("a", "b");
  const [one = "", two = ""] = await queue.deliver("g", "c");
  return { queue, one, two };
}

test("an acknowledgement notes when, by whom and in which attempt a message was handled", async () => {
  const { queue, one, two } = await delivered();
  const before = Number((await queue.redis.time())[0]) * 1000;
  const reply = await noting(queue, [
    { entry: one, address: bytes(a.address), key: a.key, attempt: 3 },
    { entry: two, address: bytes(b.address) },
  ]);
  expect(reply).toEqual({ settled: [true, true], refusal: undefined });
  const { notes, next } = await find(queue, bytes(a.address));
  expect(next).toBeUndefined();
  expect(notes).toEqual([
    {
      address: bytes(a.address),
      key: a.key,
      group: "g",
      handledAt: expect.any(Number),
      attempt: 3,
      duration: 5,
      process: "host-1/42",
    },
  ]);
  expect(notes[0]?.handledAt).toBeGreaterThanOrEqual(before);
  expect((await find(queue, "", a.key)).notes).toEqual(notes);
  expect((await find(queue, "", "another")).notes).toEqual([]);
  expect(await run(queue.redis, handledSince, queue.keys, {})).toEqual({
    count: 2,
    since: notes[0]?.handledAt,
  });
  const left = await queue.redis.pttl(queue.keys.handled);
  expect(left).toBeGreaterThan(HOUR - 60_000);
});

test("sent a second time, it notes nothing more", async () => {
  const { queue, one } = await delivered();
  const rows = [
    { entry: one, address: bytes(a.address) },
    { entry: one, address: bytes(a.address) },
  ];
  expect((await noting(queue, rows)).settled).toEqual([true, false]);
  expect((await noting(queue, rows)).settled).toEqual([false, false]);
  expect(await queue.redis.xlen(queue.keys.handled)).toBe(1);
});

test("what is not in flight for the consumer, and what its group must not handle, is not noted", async () => {
  const { queue, one, two } = await delivered();
  const reply = await noting(queue, [
    { entry: one, address: "" },
    { entry: "9-9", address: bytes(b.address) },
  ]);
  expect(reply.settled).toEqual([true, false]);
  await noting(queue, [{ entry: two, address: bytes(b.address) }], { consumer: "other" });
  expect(await queue.redis.exists(queue.keys.handled)).toBe(0);
});

test("each group notes what it has handled", async () => {
  const { queue, one } = await delivered("h");
  await queue.deliver("h", "d");
  await noting(queue, [{ entry: one, address: bytes(a.address) }]);
  await noting(queue, [{ entry: one, address: bytes(a.address) }], { group: "h", consumer: "d" });
  const { notes } = await find(queue, bytes(a.address));
  expect(notes.map(({ group }) => group)).toEqual(["h", "g"]);
});

test("notes beyond their time go in blocks, and all of them at its end", async () => {
  const { queue, one } = await delivered();
  const { redis, keys } = queue;
  const old = redis.pipeline();
  for (let i = 1; i <= 1000; i++) old.xadd(keys.handled, `${i}-0`, "a", "x", "k", "");
  await old.exec();
  await noting(queue, [{ entry: one, address: bytes(a.address) }], { keepFor: 1000 });
  expect(await redis.xlen(keys.handled)).toBeLessThanOrEqual(101);
  expect((await find(queue, bytes(a.address))).notes.length).toBe(1);
  expect(await redis.pttl(keys.handled)).toBeLessThanOrEqual(1000);
});

test("beyond the greatest number, the oldest notes go", async () => {
  const { queue, one, two } = await delivered();
  const { redis, keys } = queue;
  const now = Date.now();
  for (let at = 0; at < 100_200; at += 10_000) {
    const many = redis.pipeline();
    for (let i = at; i < Math.min(at + 10_000, 100_200); i++) {
      many.xadd(keys.handled, `${now}-${i + 1}`, "a", "x", "k", "");
    }
    await many.exec();
  }
  await noting(queue, [{ entry: one, address: bytes(a.address) }]);
  expect(await redis.xlen(keys.handled)).toBeLessThanOrEqual(100_100);
  await noting(queue, [{ entry: two, address: bytes(b.address) }]);
  expect((await find(queue, bytes(b.address))).notes.length).toBe(1);
});

test("a refused note leaves the acknowledgement as it is, and the reply says why", async () => {
  const { queue, one } = await delivered();
  await queue.redis.set(queue.keys.handled, "a string");
  const reply = await noting(queue, [{ entry: one, address: bytes(a.address) }]);
  expect(reply.settled).toEqual([true]);
  expect(reply.refusal).toContain("WRONGTYPE");
  expect((await queue.snapshot()).stream).toEqual([{ p: "b" }]);
});

test("a page looks at so many, and no further back than it is told", async () => {
  const queue = await newStreams("g");
  const { redis, keys } = queue;
  const address = bytes(a.address);
  for (let i = 1; i <= 5; i++) await redis.xadd(keys.handled, `${i}-0`, "a", address, "n", "2");
  await redis.xadd(keys.handled, "6-0", "what", "is this");
  const page = (before: string, from = "-") =>
    run(redis, handledPage, keys, { wanted: address, key: "", before, from, limit: 3 });
  const first = await page("");
  expect(first.notes.map(({ handledAt }) => handledAt)).toEqual([5, 4]);
  expect(first.next).toBe("4-0");
  const second = await page("4-0", "2-0");
  expect(second.notes.map(({ handledAt }) => handledAt)).toEqual([3, 2]);
  expect(second.next).toBeUndefined();
});

test("without the option an acknowledgement knows nothing of notes", () => {
  expect(ack.keys).toEqual(["stream"]);
  expect(ack.lua).not.toContain("handled");
  expect(ack.args).toEqual(["group", "consumer", "heldCount"]);
  expect(ack.each).toEqual(["entry", "own"]);
});
