import {
  removeById,
  removeByIdExact,
  removeByKey,
  removeByKeyExact,
} from "../lua/delayed/remove.ts";
import { isMessageId, parseMessageId } from "../queue/message.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";

/** Cancellations on their way to Redis. Those of one turn of the event loop travel together. */
export class CancelBatch {
  readonly #queue: Queue;
  readonly #batch = new TurnBatch<string, boolean>({
    send: (idsOrKeys) => this.#send(idsOrKeys),
    kindOf: (idOrKey) => (isMessageId(idOrKey) ? "id" : "key"),
    sizeOf: (idOrKey) => idOrKey.length,
  });

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Cancels a message by its id or its business key; returns whether it was delayed. */
  add(idOrKey: string): Promise<boolean> {
    return this.#batch.add(idOrKey);
  }

  /** Resolves when every cancellation made so far is settled. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  #send(idsOrKeys: readonly string[]): Promise<boolean[]> {
    const isExact = this.#queue.elements === "members";
    if (idsOrKeys[0] === undefined || !isMessageId(idsOrKeys[0])) {
      const script = isExact ? removeByKeyExact : removeByKey;
      const keys = idsOrKeys.map((wanted) => ({ wanted }));
      return this.#queue.change("cancel in", script, {}, keys);
    }
    const addresses = idsOrKeys.filter(isMessageId).map((id) => ({ wanted: parseMessageId(id) }));
    const script = isExact ? removeByIdExact : removeById;
    return this.#queue.change("cancel in", script, {}, addresses);
  }
}
