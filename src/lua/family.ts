/**
 * The elements of a queue's insertion-order LIST: addresses of 24 bytes, or copies of the ZSET's members, as Redisson
 * writes them (`interop: "redisson"`). Scripts take it as the argument `elementsAre`.
 */
export type Elements = "addresses" | "members";

/** Where messages go when they are due: the ready LIST, or the stream of a reliable queue. */
export type Into = "list" | "stream";

/** How a queue is laid out in Redis, as far as its scripts depend on it. */
export interface Layout {
  readonly elements: Elements;
  readonly into: Into;
}

/** A script, or its forms for plain and reliable queues. */
export type Family<Item> = Item | Readonly<Record<Into, Item>>;
