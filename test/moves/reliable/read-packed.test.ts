import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { unpackEntry } from "../../../src/lua/fragments/entry.ts";
import { readPacked } from "../../../src/lua/reliable/read-packed.ts";
import { run } from "../../../src/lua/script.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newStreams, type Streams } from "../../helpers/streams.ts";

const reading = ({ redis, keys }: Streams, count = 1000, group = "g") =>
  run(redis, readPacked, keys, { group, consumer: "c", count });

/** The entries of the stream, as they are read otherwise. */
async function entries({ redis, keys }: Streams) {
  const found = await redis.xrangeBuffer(keys.stream, "-", "+");
  return found.map(([id, fields]) => {
    const entryId = id.toString();
    return unpackEntry(entryId, fields) ?? { entryId, fields };
  });
}

test("read-packed: reads the next entries as XREADGROUP does, and nothing once all are read", async () => {
  const queue = await newStreams("g");
  await queue.add("a", { p: "b", n: "2", g: "g", t: "trailer", d: "1", u: "70" }, "c");
  const all = await entries(queue);
  expect(await reading(queue, 2)).toEqual(all.slice(0, 2));
  expect((await queue.snapshot()).inFlight).toEqual({ g: { c: ["a", "b"] } });
  expect(await reading(queue)).toEqual(all.slice(2));
  expect(await reading(queue)).toEqual([]);
});

/** Without the difference, for which Vitest takes long. */
async function expectSame(queue: Streams) {
  expect(isDeepStrictEqual(await reading(queue), await entries(queue))).toBe(true);
}

test.each([0, 1, 31, 32, 255, 256, 65_535, 65_536])(
  "read-packed: bytes of every length come as they are, such as %i",
  async (length) => {
    const queue = await newStreams("g");
    await queue.redis.xadd(queue.keys.stream, "*", "a", randomBytes(24), "p", randomBytes(length));
    await queue.redis.xadd(queue.keys.stream, "*", randomBytes(length), randomBytes(length));
    await expectSame(queue);
  },
);

test.each([1, 15, 16, 1000])("read-packed: %i entries come in order", async (count) => {
  const queue = await newStreams("g");
  await queue.add(...upTo(count).map(String));
  await expectSame(queue);
});

test("read-packed: a foreign entry keeps all its fields, however many, also those with the same name", async () => {
  const queue = await newStreams("g");
  await queue.redis.xadd(queue.keys.stream, "*", "p", "1", "p", "2", "", "\xFF");
  await queue.redis.xadd(queue.keys.stream, "*", ...upTo(70_000).map(String));
  await expectSame(queue);
});

test("read-packed: Redis's refusal begins with its code", async () => {
  const queue = await newStreams("g");
  await expect(reading(queue, 1, "none")).rejects.toThrow(/^NOGROUP /);
  await queue.redis.set(queue.keys.stream, "text");
  await expect(reading(queue)).rejects.toThrow(/^WRONGTYPE /);
});
