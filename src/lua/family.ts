import type { RawReply } from "./reply.ts";

/**
 * The elements of a queue's insertion-order LIST: addresses of 24 bytes, or copies of the ZSET's members, as Redisson
 * writes them (`interop: "redisson"`).
 */
export type Elements = "addresses" | "members";

/** Where messages go when they are due: the ready LIST, or the stream of a reliable queue. */
export type Into = "list" | "stream";

/** How a queue is laid out in Redis, as far as its scripts depend on it. */
export interface Layout {
  readonly elements: Elements;
  readonly into: Into;
}

/** One item for each kind of elements. */
export type ByElements<Item> = Readonly<Record<Elements, Item>>;

/** A script, or its forms for different layouts; see {@link pick}. */
export type Family<Item> =
  Item | ByElements<Item> | Readonly<Record<Into, Item>> | Readonly<Record<Into, ByElements<Item>>>;

/** Makes an item for each kind of elements. */
export function byElements<Item>(make: (elements: Elements) => Item): ByElements<Item> {
  return { addresses: make("addresses"), members: make("members") };
}

/** Returns the form of a script for a queue of this layout. */
export function pick<Item extends { readonly reply: (raw: RawReply) => unknown }>(
  family: Family<Item>,
  layout: Layout,
): Item {
  if ("reply" in family) return family;
  if ("addresses" in family) return family[layout.elements];
  return pick(family[layout.into], layout);
}
