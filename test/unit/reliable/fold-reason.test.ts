import { expect, test } from "vitest";
import { foldReason } from "../../../src/reliable/letter-filter.ts";

test.each([
  ["connect ETIMEDOUT 10.0.0.3:5432", "connect ETIMEDOUT #:#"],
  ["connect ETIMEDOUT 192.168.17.250:443", "connect ETIMEDOUT #:#"],
  ["timeout after 1,500 ms", "timeout after # ms"],
  ["no user 6f1c2b9e-3f0a-4d1b-8a3e-0123456789ab", "no user #"],
  ["block 0xDEADbeef is bad", "block # is bad"],
  ["commit 256f22dd is gone", "commit # is gone"],
  ["order:42 was cancelled\n    at handle (worker.js:10:3)", "order:# was cancelled"],
  ["\n\n  late", "late"],
  // What looks like a code stays.
  ["answered 503", "answered 503"],
  ["answered 500 after 3 attempts", "answered 500 after # attempts"],
  ["SMTP 550 5.1.1 no such user 4711", "SMTP 550 5.1.1 no such user #"],
  ["ENOENT (errno 404): HTTP 429, retry in 30", "ENOENT (errno 404): HTTP 429, retry in #"],
  // These have three digits, and are none.
  ["timeout after 500 ms, 300s, 250ms", "timeout after # ms, #s, #ms"],
  [
    "order 4711, order 842, order-503, order:503, #404, 10.0.0.3",
    "order #, order #, order-#, order:#, ##, #",
  ],
  ["at 503:12, 200/300 done, 120 kB", "at #:#, #/# done, # kB"],
  // Words that only look like hexadecimal digits are words.
  ["the facade of a defaced cafe", "the facade of a defaced cafe"],
  ["سفارش ۴۲ پیدا نشد 👩‍👩‍👧", "سفارش ۴۲ پیدا نشد 👩‍👩‍👧"],
  ["", ""],
  [`${"x".repeat(300)}1`, "x".repeat(200)],
])("%j is folded to %j, and that to itself", (reason, folded) => {
  expect(foldReason(reason)).toBe(folded);
  expect(foldReason(folded)).toBe(folded);
});
