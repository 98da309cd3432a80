import type { RawReply } from "./reply.ts";

/**
 * What the elements of a queue's insertion-order LIST are: addresses of 24 bytes, or the members of the
 * ZSET once more, as Redisson writes them (`interop: "redisson"`).
 */
export type Elements = "addresses" | "members";

/** What messages go into when they are due: the ready LIST, or the stream of a reliable queue. */
export type Into = "list" | "stream";

/** How a queue lies in Redis, as far as its scripts differ by it. It is decided once, where the queue is opened. */
export interface Layout {
  readonly elements: Elements;
  readonly into: Into;
}

/** One of each kind of elements. */
export type ByElements<Item> = Readonly<Record<Elements, Item>>;

/** A script, or the forms that it has for different layouts; {@link pick} chooses. */
export type Family<Item> = Item | ByElements<Item> | Readonly<Record<Into, ByElements<Item>>>;

/** Makes one for each kind of elements. */
export function byElements<Item>(make: (elements: Elements) => Item): ByElements<Item> {
  return { addresses: make("addresses"), members: make("members") };
}

/** The form of a script that a queue of this layout uses. */
export function pick<Item extends { readonly reply: (raw: RawReply) => unknown }>(
  family: Family<Item>,
  layout: Layout,
): Item {
  if ("reply" in family) return family;
  return ("addresses" in family ? family : family[layout.into])[layout.elements];
}
