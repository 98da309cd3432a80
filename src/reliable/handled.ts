import {
  handledPage,
  handledSince,
  type HandledNote,
  type HandledPage,
} from "../lua/reliable/handled.ts";
import type { Call } from "../queue/call.ts";
import { isMessageId, messageIdAt, whichOf } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { startOf } from "./contents.ts";

export { MOST_HANDLED } from "../lua/places/handled.ts";
export type { HandledNote } from "../lua/reliable/handled.ts";

/** How many handled messages one part of a queue remembers. */
export interface HandledRange {
  readonly count: number;
  /** When the first of them was handled (epoch ms). Undefined if there is none: `keepHandled` is off, or its time over. */
  readonly since: number | undefined;
}

/** What one part of a reliable queue remembers of the messages that were handled, with the option `keepHandled`. */
export class Handled {
  readonly #queue: Queue;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** How many it remembers, and since when. O(1). */
  async range(call?: Call): Promise<HandledRange> {
    return await this.#queue.read("look into", handledSince, {}, call);
  }

  /**
   * What it remembers of the message with this id, or of the last one with this key: a note for each group, the newest
   * first. O(N): by an id in what was handled since its deadline, by a key up to the last message that had it.
   */
  async of(idOrKey: string, call?: Call): Promise<HandledNote[]> {
    const found: HandledNote[] = [];
    for await (const notes of this.#find(idOrKey, call)) {
      found.push(...notes);
      const [last] = found;
      if (last !== undefined && !isMessageId(idOrKey)) {
        return await this.of(messageIdAt(last.address), call);
      }
    }
    return found;
  }

  async *#find(idOrKey: string, call?: Call): AsyncGenerator<readonly HandledNote[], void, void> {
    const { id, key } = whichOf(idOrKey);
    const args = { wanted: id, key, from: startOf(idOrKey) || "-", limit: STEP };
    let before: string | undefined = "";
    while (before !== undefined) {
      const page: HandledPage = await this.#queue.read(
        "look into",
        handledPage,
        { ...args, before },
        call,
      );
      yield page.notes;
      before = page.next;
    }
  }
}

/** Notes that one script looks at: a few hundred microseconds of Redis's time. */
const STEP = 40;
