import { expect, test } from "vitest";
import { ack } from "../../../src/lua/reliable/deliveries.ts";
import { run } from "../../../src/lua/script.ts";
import { newStreams, rowsOf, type Streams } from "../../helpers/streams.ts";

const letters = (count: number) => Array.from({ length: count }, (_, i) => `m${i}`);

const acking = (
  { redis, keys }: Streams,
  ids: readonly string[],
  { group = "g", consumer = "c", heldCount = 100, own = 0 } = {},
) => run(redis, ack, keys, { group, consumer, heldCount }, rowsOf(ids, { own }));

test("ack: deletes entries of the only group; unfinished ones stay", async () => {
  const queue = await newStreams("g");
  await queue.add("a", "b", "c", "d");
  const [a = "", , c = ""] = await queue.deliver("g", "c", 3);
  expect(await acking(queue, [c, a])).toEqual([true, true]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b" }, { p: "d" }],
    inFlight: { g: { c: ["b"] } },
  });
});

test("ack: false for entries that are another consumer's, not delivered, finished already or unknown", async () => {
  const queue = await newStreams("g");
  const [a = "", b = "", c = "", d = ""] = await queue.add("a", "b", "c", "d");
  await queue.deliver("g", "c", 1);
  await queue.deliver("g", "other", 1);
  await queue.deliver("g", "c", 1);
  expect(await acking(queue, [a])).toEqual([true]);
  expect(await acking(queue, [a, b, d, "5-5", c])).toEqual([false, false, false, false, true]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b" }, { p: "d" }],
    inFlight: { g: { other: ["b"] } },
  });
});

test("ack: a repeated id is settled once", async () => {
  const queue = await newStreams("g");
  const [a = ""] = await queue.add("a");
  await queue.deliver("g", "c");
  expect(await acking(queue, [a, a])).toEqual([true, false]);
});

test("ack: the last of two groups that finishes an entry deletes it", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add("a", "b", "c");
  await queue.deliver("g", "c");
  await queue.deliver("h", "c", 2);
  await acking(queue, ids.slice(0, 1), { group: "h" });
  // Group h has finished "a", has "b" in flight, and was not given "c" yet.
  expect(await acking(queue, ids)).toEqual([true, true, true]);
  expect(await queue.snapshot()).toEqual({
    stream: [{ p: "b" }, { p: "c" }],
    inFlight: { h: { c: ["b"] } },
  });
  await queue.deliver("h", "c");
  expect(await acking(queue, ids, { group: "h" })).toEqual([false, true, true]);
  expect(await queue.snapshot()).toEqual({});
});

test("ack: with three groups each of the others counts", async () => {
  const queue = await newStreams("g", "h", "i");
  const ids = await queue.add("a");
  for (const group of ["g", "h", "i"]) await queue.deliver(group, "c");
  for (const group of ["h", "g"]) await acking(queue, ids, { group });
  expect(await queue.snapshot()).toEqual({ stream: [{ p: "a" }], inFlight: { i: { c: ["a"] } } });
  await acking(queue, ids, { group: "i" });
  expect(await queue.snapshot()).toEqual({});
});

test("ack: the other group may have many in flight between two entries", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add(...letters(100));
  await queue.deliver("g", "c");
  await queue.deliver("h", "other");
  const [first = "", second = "", last = ""] = [ids[0], ids[1], ids.at(-1)];
  await acking(queue, [second], { group: "h", consumer: "other" });
  expect(await acking(queue, [first, second, last])).toEqual([true, true, true]);
  const { stream } = await queue.snapshot();
  expect(stream).toEqual(
    letters(100)
      .filter((p) => p !== "m1")
      .map((p) => ({ p })),
  );
});

test.each(["ascending", "descending"] as const)(
  "ack: of many entries, %s, those below all that is needed go together; what is in flight or unread stays",
  async (order) => {
    const queue = await newStreams("g");
    const ids = await queue.add(...letters(60));
    await queue.deliver("g", "c", 20);
    await queue.deliver("g", "other", 1);
    await queue.deliver("g", "c", 29);
    const mine = [...ids.slice(0, 20), ...ids.slice(21, 50)];
    const inOrder = order === "ascending" ? mine : mine.toReversed();
    expect(await acking(queue, inOrder)).toEqual(mine.map(() => true));
    expect(await queue.snapshot()).toEqual({
      stream: ["m20", ...letters(60).slice(50)].map((p) => ({ p })),
      inFlight: { g: { other: ["m20"] } },
    });
    expect(await acking(queue, ids.slice(20, 21), { consumer: "other" })).toEqual([true]);
    expect(await queue.snapshot()).toEqual({
      stream: letters(60)
        .slice(50)
        .map((p) => ({ p })),
    });
  },
);

test("ack: a few in any order out of many in flight", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add(...letters(100));
  await queue.deliver("g", "c", 90);
  const [last = "", first = "", unread = "", middle = ""] = [ids[80], ids[0], ids[95], ids[40]];
  expect(await acking(queue, [last, first, unread, middle, first])).toEqual([
    true,
    true,
    false,
    true,
    false,
  ]);
  const { stream, inFlight } = await queue.snapshot();
  const left = letters(100).filter((p) => !["m0", "m40", "m80"].includes(p));
  expect(stream).toEqual(left.map((p) => ({ p })));
  expect(inFlight).toEqual({ g: { c: left.slice(0, 87) } });
});

test("ack: entries that a script has kept in flight ahead of the group are needed", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add(...letters(30));
  await queue.deliver("g", "c", 12);
  const kept = ids[20] ?? "";
  await queue.redis.xclaim(queue.keys.stream, "g", "other", 0, kept, "FORCE", "JUSTID");
  expect(await acking(queue, ids.slice(0, 12))).toEqual(ids.slice(0, 12).map(() => true));
  expect(await queue.snapshot()).toEqual({
    stream: letters(30)
      .slice(12)
      .map((p) => ({ p })),
    inFlight: { g: { other: ["m20"] } },
  });
});

test("ack: an entry for one group only is deleted at once", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add({ p: "a", g: "g" });
  await queue.deliver("g", "c");
  expect(await acking(queue, ids, { own: 1 })).toEqual([true]);
  expect(await queue.snapshot()).toEqual({});
});

test("ack: finishes an entry whose data are gone", async () => {
  const queue = await newStreams("g", "h");
  const [a = "", b = ""] = await queue.add("a", "b");
  await queue.deliver("g", "c");
  await queue.redis.xdel(queue.keys.stream, a);
  expect(await acking(queue, [a, b])).toEqual([true, true]);
  expect(await queue.snapshot()).toEqual({ stream: [{ p: "b" }] });
});

test("ack: many entries, in any order, with more in flight than the hint says", async () => {
  const queue = await newStreams("g", "h");
  const ids = await queue.add(...letters(400));
  await queue.deliver("g", "c");
  await queue.deliver("h", "other");
  // Group h has finished one entry in ten. More are in flight than one XPENDING returns.
  const done = ids.filter((_, i) => i % 10 === 0);
  await acking(queue, done, { group: "h", consumer: "other", heldCount: 400 });
  const acked = [...done, ...ids.slice(-60)].toReversed();
  expect(await acking(queue, acked, { heldCount: 1 })).toEqual(
    acked.map((id, i) => acked.indexOf(id) === i),
  );
  const { stream, inFlight } = await queue.snapshot();
  expect(stream).toEqual(
    letters(400)
      .filter((_, i) => i % 10 !== 0)
      .map((p) => ({ p })),
  );
  expect(inFlight?.["g"]?.["c"]).toEqual(letters(340).filter((_, i) => i % 10 !== 0));
  expect(inFlight?.["h"]?.["other"]).toHaveLength(360);
});

test("ack: compares ids as numbers, up to the greatest", async () => {
  const queue = await newStreams("g", "h");
  const big = "9007199254740993";
  const ids = ["9-9", "9-10", "10-0", "10-2", `${big}-1`, `${big}-9007199254740992`];
  ids.push(`${big}-9007199254740993`, "18446744073709551615-2");
  for (const id of ids) await queue.redis.xadd(queue.keys.stream, id, "a", "a", "p", id);
  await queue.deliver("g", "c");
  await queue.deliver("h", "c", 6);
  await acking(queue, ids, { group: "h" });
  // Sorted as strings, where "9-9" is neither the first nor the last.
  expect(await acking(queue, ids.toSorted())).toEqual(ids.map(() => true));
  const left = await queue.redis.xrange(queue.keys.stream, "-", "+");
  expect(left.map(([id]) => id)).toEqual(ids.slice(6));
});

test("ack: false without a group or a stream", async () => {
  const queue = await newStreams();
  expect(await acking(queue, ["1-1"])).toEqual([false]);
  await queue.addGroup("h");
  expect(await acking(queue, ["1-1"])).toEqual([false]);
  expect(await acking(queue, [])).toEqual([]);
  expect(await queue.snapshot()).toEqual({});
});

test("ack: fails if the stream's key has another type", async () => {
  const queue = await newStreams();
  await queue.redis.set(queue.keys.stream, "somebody else's");
  await expect(acking(queue, ["1-1"])).rejects.toThrow(/^WRONGTYPE/);
});

test("ack: looks up ids one by one if many other entries of the consumer lie between them", async () => {
  const queue = await newStreams("g");
  const ids = await queue.add(...letters(60));
  await queue.deliver("g", "c", 30);
  await queue.deliver("g", "other", 1);
  await queue.deliver("g", "c", 29);
  const [first = "", others = "", last = ""] = [ids[0], ids[30], ids[59]];
  expect(await acking(queue, [last, others, first])).toEqual([true, false, true]);
  expect((await queue.snapshot()).stream).toHaveLength(58);
});
