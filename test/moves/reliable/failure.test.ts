import { beforeEach, expect, test } from "vitest";
import { countFailure, withoutFailures } from "../../../src/lua/fragments/failure.ts";
import { readTrailer } from "../../../src/lua/fragments/trailer.ts";
import { asBuffer, asBuffers } from "../../../src/lua/reply.ts";
import { defineScript, run } from "../../../src/lua/script.ts";
import { failuresIn, packTrailer, unpackTrailer } from "../../../src/queue/message/trailer.ts";
import { newRedis } from "../../helpers/redis.ts";

const AT = 1_760_000_000_123;

/** Counts a failure, with `n` attempts before. Returns the new trailer, and the business key that Redis finds in it. */
const count = defineScript({
  name: "count",
  keys: [],
  args: ["trailer", "n", "reason"],
  needs: [countFailure, readTrailer],
  lua: /* lua */ `
local entry = { t = trailer ~= "none" and trailer or nil, n = tonumber(n) }
countFailure(entry, reason, ${AT}999)
return { entry.t, readTrailer(entry.t) or "" }
`,
  reply: (raw) => asBuffers(raw) as [trailer: Buffer, key: Buffer],
});

let redis: ReturnType<typeof newRedis>;
beforeEach(() => {
  redis = newRedis();
});

const fail = async (trailer: Buffer | string, { n = 0, reason = "busy" } = {}) =>
  (await run(redis, count, {}, { trailer, n, reason }))[0];

const drop = defineScript({
  name: "drop",
  keys: [],
  args: ["trailer"],
  needs: [withoutFailures],
  lua: "return withoutFailures(trailer)",
  reply: asBuffer,
});

const forget = (trailer: Buffer | string) => run(redis, drop, {}, { trailer });

const HEADERS = { a: "1", b: "" };

test.each([
  ["nothing", "none", {}],
  ["an empty trailer", "", {}],
  ["a bare key", "order:42", { key: "order:42" }],
  ["a key that is not ASCII", Buffer.from("é"), { key: "é" }],
  ["headers", packTrailer({ headers: HEADERS }), { headers: HEADERS }],
  ["all", packTrailer({ key: "k", headers: HEADERS }), { key: "k", headers: HEADERS }],
])("%s becomes what packTrailer writes, and the key is still found", async (...all) => {
  const [, trailer, carried] = all;
  const [failed, key] = await run(redis, count, {}, { trailer, n: 4, reason: "busy é" });
  const failures = [{ at: AT, attempt: 5, reason: "busy é" }];
  expect(failed).toEqual(packTrailer({ ...carried, failures }));
  expect(failuresIn(failed)).toEqual(failures);
  expect(unpackTrailer(failed)).toMatchObject(carried);
  expect(key.toString()).toBe("key" in carried ? carried.key : "");
});

test("the last ten failures are kept, and all other fields stay, wherever they are", async () => {
  let trailer: Buffer = Buffer.from("k");
  for (let n = 0; n < 12; n++) trailer = await fail(trailer, { n, reason: `r${n}` });
  const attempts = () => failuresIn(trailer).map(({ attempt }) => attempt);
  expect(attempts()).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(trailer.length).toBe(2 + 6 + 10 * 17 + 8 * 2 + 2 * 3);
  // If a foreign program has written more failures, the leading neighbours are cut.
  const unknown = Buffer.from("6302000000abcd", "hex");
  const some = [{ at: 1, attempt: 1, reason: "" }];
  const more = packTrailer({ headers: { h: "1" }, failures: some }).subarray(2);
  trailer = await fail(Buffer.concat([trailer, unknown, more, unknown]), { n: 20 });
  expect(attempts()).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 1, 21]);
  expect(unpackTrailer(trailer)).toMatchObject({ key: "k", headers: { h: "1" } });
  expect(trailer.toString("hex").split("6302000000abcd")).toHaveLength(3);
});

test.each([
  ["200 bytes", "x".repeat(200), "x".repeat(200)],
  ["201 bytes", "x".repeat(201), "x".repeat(200)],
  ["a character of two bytes at the border", `${"x".repeat(199)}éé`, "x".repeat(199)],
  ["a character of three bytes", `${"x".repeat(198)}€€`, "x".repeat(198)],
  ["a character of four bytes", `${"x".repeat(197)}🙂🙂`, "x".repeat(197)],
  ["a character that ends at the border", `${"x".repeat(196)}🙂🙂`, `${"x".repeat(196)}🙂`],
])("a reason is cut to 200 bytes, but not inside a character: %s", async (_, reason, kept) => {
  expect(failuresIn(await fail("none", { reason }))[0]?.reason).toBe(kept);
});

test.each([
  "ff",
  "ff02010000006b",
  "ff0101",
  "ff010101000000",
  "ff01040c000000",
  "ff0102ffffffff00",
])("a malformed trailer, %s, is left alone", async (hex) => {
  const trailer = Buffer.from(hex, "hex");
  expect(await fail(trailer)).toEqual(trailer);
  expect(await forget(trailer)).toEqual(trailer);
});

test("five hundred failures are cut to ten at once", async () => {
  const failures = Array.from({ length: 500 }, (_, i) => ({ at: AT, attempt: i, reason: "r" }));
  const trailer = await fail(packTrailer({ key: "k", failures }), { n: 500 });
  expect(failuresIn(trailer).map(({ attempt }) => attempt)).toEqual([
    ...Array.from({ length: 9 }, (_, i) => 491 + i),
    501,
  ]);
});

test.each([
  ["nothing", ""],
  ["a bare key", "order:42"],
  ["headers", packTrailer({ headers: HEADERS })],
  ["all", packTrailer({ key: "k", headers: HEADERS })],
])("%s is what is left without the failures", async (_, trailer) => {
  const failed = await fail(await fail(trailer), { n: 1 });
  expect(await forget(failed)).toEqual(Buffer.from(trailer));
  expect(await forget(trailer)).toEqual(Buffer.from(trailer));
});
