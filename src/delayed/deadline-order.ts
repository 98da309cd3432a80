import type { DelayedMember } from "../lua/delayed/get.ts";
import { FIRST, soonest, type DeadlineCursor } from "../lua/delayed/soonest.ts";
import { run } from "../lua/script.ts";
import type { Call } from "../queue/call.ts";
import { unpackMember } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { PAGE_BYTES, STEP } from "./order-reader.ts";

/** Reads the messages of a place in the order of their deadlines, a page at a time: of the delayed ones, by default. */
export class DeadlineOrder {
  readonly #queue: Queue;
  readonly #zset: string;

  /** `zset`: the key of the place, which holds members by deadline. */
  constructor(queue: Queue, zset = queue.keys.timeouts) {
    this.#queue = queue;
    this.#zset = zset;
  }

  /**
   * The messages, each once, in pages of at most `step`. A message that is rescheduled meanwhile keeps the 16 bytes of
   * its id, by which it is recognised. Members of an unknown layout are left out; each calls `onUnknown`.
   */
  async *members(
    step = STEP,
    call?: Call,
    onUnknown: () => void = () => {},
  ): AsyncGenerator<DelayedMember, void, void> {
    const seen = new Set<string>();
    let cursor: DeadlineCursor | undefined = FIRST;
    while (cursor !== undefined) {
      const args = { ...cursor, step: Math.min(step, STEP), maxBytes: PAGE_BYTES };
      const page: ReturnType<typeof soonest.reply> = await this.#queue.call(
        "read",
        (redis) => run(redis, soonest, { zset: this.#zset }, args),
        call,
      );
      for (const found of page.messages) {
        const id = unpackMember(found.member)?.id.toString("latin1");
        if (id === undefined) onUnknown();
        if (id === undefined || seen.has(id)) continue;
        seen.add(id);
        yield found;
      }
      cursor = page.next;
    }
  }
}
