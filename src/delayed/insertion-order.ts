import type { DelayedMember } from "../lua/delayed/get.ts";
import { START, type Cursor, type Page } from "../lua/delayed/page.ts";
import { readPage } from "../lua/delayed/read-page.ts";
import { searchPage, type SearchHit } from "../lua/delayed/search-page.ts";
import { removeByElement } from "../lua/delayed/remove.ts";
import { ID_BYTES, isPlain, packAddress, unpackMember } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";

/** Elements of the insertion order, or messages, that one script looks at, at most. */
export const STEP = 50;

/** A page ends when it holds this many bytes. To find, copy and reply with them costs some 300 us of Redis's time. */
export const PAGE_BYTES = 65_536;

/** Messages that one script removes. */
const REMOVE_STEP = 8;

/** Payloads that Redis compares with; where there are more, it is done here. */
const MOST_WANTED = 50;

/**
 * The insertion order of a queue's delayed messages, oldest first, read a page at a time.
 *
 * None that stays in the queue is missed. One may come twice, if the order is compacted meanwhile.
 */
export class InsertionOrder {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** The messages, in pages of `maxBytes` or a little more. */
  members(maxBytes: number, signal?: AbortSignal): AsyncGenerator<DelayedMember, void, void> {
    return this.#pages((cursor) =>
      this.#queue.read("read", readPage, { ...cursor, step: STEP, maxBytes }, { signal }),
    );
  }

  /**
   * The messages' elements, each with the verdict whether its payload is one of these. Redis compares,
   * unless there are so many that they would weigh more than what they are compared with.
   */
  search(payloads: readonly Buffer[], signal?: AbortSignal): AsyncGenerator<SearchHit, void, void> {
    if (payloads.length > MOST_WANTED) return this.#compare(payloads, signal);
    const rows = payloads.map((wanted) => ({ wanted }));
    return this.#pages((cursor) =>
      this.#queue.read("search", searchPage, { ...cursor, step: STEP }, { rows, signal }),
    );
  }

  async *#compare(
    payloads: readonly Buffer[],
    signal?: AbortSignal,
  ): AsyncGenerator<SearchHit, void, void> {
    const wanted = new Set(payloads.map((payload) => payload.toString("latin1")));
    for await (const { member, deadline } of this.members(PAGE_BYTES, signal)) {
      const message = unpackMember(member);
      if (message === undefined) continue;
      const hasAddress = message.id.length === ID_BYTES && isPlain(deadline);
      yield {
        element: hasAddress ? packAddress(deadline, message.id) : member,
        isMatch: wanted.has(message.payload.toString("latin1")),
      };
    }
  }

  /** Removes the messages that these elements stand for; returns how many were still there. */
  async remove(elements: readonly Buffer[], signal?: AbortSignal): Promise<number> {
    let removed = 0;
    for (let i = 0; i < elements.length; i += REMOVE_STEP) {
      const some = elements.slice(i, i + REMOVE_STEP).map((wanted) => ({ wanted }));
      const flags = await this.#queue.change(
        "remove from",
        removeByElement,
        {},
        { rows: some, signal },
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
