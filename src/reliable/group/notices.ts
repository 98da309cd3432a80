import type { Queue } from "../../queue/queue.ts";
import type { Listener } from "../../redis/subscriber.ts";

/** Hears which of a consumer's messages were revoked. */
export interface NoticeListener {
  /** The message of an entry that is in flight for the consumer was revoked. */
  onRevoked(entryId: string, reason: string | undefined): void;
  /** Notices may have been missed. */
  onMissed(): void;
}

/**
 * What Redis tells of revoked messages of one queue, for each of this process's consumers there. Subscribed while there is a
 * consumer. Only a hint: what is missed, or refused by an access rule, a consumer finds with its next beat.
 */
export class Notices implements Listener {
  readonly isOptional = true;
  readonly #queue: Queue;
  readonly #listeners = new Map<string, NoticeListener>();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  listen(consumer: string, listener: NoticeListener): void {
    const isFirst = this.#listeners.size === 0;
    this.#listeners.set(consumer, listener);
    if (isFirst) this.#queue.server.subscriber.listen(this.#queue.keys.notices, this);
  }

  unlisten(consumer: string): void {
    if (!this.#listeners.delete(consumer) || this.#listeners.size > 0) return;
    this.#queue.server.subscriber.unlisten(this.#queue.keys.notices, this);
  }

  onSubscribed(): void {
    for (const listener of this.#listeners.values()) listener.onMissed();
  }

  onMessage(message: string): void {
    const notice = asTexts(message);
    if (notice.length < 4) return;
    const [entryId, , consumer, reason] = notice as [string, string, string, string];
    this.#listeners.get(consumer)?.onRevoked(entryId, reason === "" ? undefined : reason);
  }
}

/** Reads a list of texts in JSON; an empty list if it is anything else. */
export function asTexts(json: string): readonly string[] {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) && list.every((one) => typeof one === "string") ? list : [];
  } catch {
    return [];
  }
}
