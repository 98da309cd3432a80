import type { Codec } from "../../src/index.ts";

/** Numbers as 30 KB each: what moves in pages needs several for few messages. */
export const BULKY: Codec = {
  name: "bulky",
  encode: (n) => Buffer.from(String(n).padEnd(30_000)),
  decode: (bytes) => Number(bytes.toString()),
};
