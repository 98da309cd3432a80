import type { DelayedMember } from "../lua/delayed/get.ts";
import {
  START,
  readPage,
  searchPage,
  type Cursor,
  type Page,
  type SearchHit,
} from "../lua/delayed/pages.ts";
import { removeElements } from "../lua/delayed/remove.ts";
import type { Call } from "../queue/call.ts";
import { ID_BYTES, isPlain, packAddress, unpackMember } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";

/** The most elements of the insertion order, or messages, that one script looks at. */
export const STEP = 50;

/** A page ends once it holds this many bytes. Finding, copying and returning them costs Redis some 300 us. */
export const PAGE_BYTES = 65_536;

/** Messages per script that removes by element. */
const REMOVE_STEP = 8;

/** The most payloads that Redis compares with. More are compared in this process. */
const MAX_WANTED = 50;

/**
 * Reads the insertion order of a queue's delayed messages, oldest first, a page at a time.
 *
 * Messages that stay in the queue are never missed. A message may appear twice if the order is compacted during the
 * iteration.
 */
export class OrderReader {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** The messages, in pages of `maxBytes` or a little more. */
  members(maxBytes: number, call?: Call): AsyncGenerator<DelayedMember, void, void> {
    return this.#pages((cursor) =>
      this.#queue.read("read", readPage, { ...cursor, step: STEP, maxBytes }, call),
    );
  }

  /**
   * Yields the element of every message, and whether the message has one of these payloads. Redis compares, unless
   * there are so many payloads that sending them with every page would cost more than reading the messages.
   */
  search(payloads: readonly Buffer[], call?: Call): AsyncGenerator<SearchHit, void, void> {
    if (payloads.length > MAX_WANTED) return this.#compare(payloads, call);
    const rows = payloads.map((wanted) => ({ wanted }));
    return this.#pages((cursor) =>
      this.#queue.read("search", searchPage, { ...cursor, step: STEP }, { ...call, rows }),
    );
  }

  async *#compare(payloads: readonly Buffer[], call?: Call): AsyncGenerator<SearchHit, void, void> {
    const wanted = new Set(payloads.map((payload) => payload.toString("latin1")));
    for await (const { member, deadline } of this.members(PAGE_BYTES, call)) {
      const message = unpackMember(member);
      if (message === undefined) continue;
      const hasAddress = message.id.length === ID_BYTES && isPlain(deadline);
      yield {
        element: hasAddress ? packAddress(deadline, message.id) : member,
        isMatch: wanted.has(message.payload.toString("latin1")),
      };
    }
  }

  /** Removes the messages that these elements stand for; returns how many were still delayed. */
  async remove(elements: readonly Buffer[], call?: Call): Promise<number> {
    let removed = 0;
    for (let i = 0; i < elements.length; i += REMOVE_STEP) {
      const some = elements.slice(i, i + REMOVE_STEP).map((element) => ({ element }));
      const flags = await this.#queue.change(
        "remove from",
        removeElements,
        {},
        { ...call, rows: some },
      );
      removed += flags.filter(Boolean).length;
    }
    return removed;
  }

  async *#pages<Item>(
    read: (cursor: Cursor) => Promise<Page<Item>>,
  ): AsyncGenerator<Item, void, void> {
    let cursor: Cursor | undefined = START;
    while (cursor !== undefined) {
      const page: Page<Item> = await read(cursor);
      yield* page.items;
      cursor = page.next;
    }
  }
}
