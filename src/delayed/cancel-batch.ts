import { removeById, removeByKey } from "../lua/delayed/remove.ts";
import { isMessageId, parseMessageId } from "../queue/message.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";

/** Cancellations on their way to Redis. Those of one turn of the event loop travel together. */
export class CancelBatch {
  readonly #queue: Queue;
  readonly #batch = new TurnBatch<string, boolean>({
    send: (batch) => this.#send(batch.claim()),
    kindOf: (idOrKey) => (isMessageId(idOrKey) ? "id" : "key"),
    sizeOf: (idOrKey) => idOrKey.length,
    giveUp: ({ cause }) => cause,
  });

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Cancels a message by its id or its business key; returns whether it was delayed. */
  add(idOrKey: string, signal?: AbortSignal): Promise<boolean> {
    return this.#batch.add(idOrKey, signal);
  }

  /** Resolves when every cancellation made so far is settled. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  #send(idsOrKeys: readonly string[]): Promise<boolean[]> {
    if (idsOrKeys[0] === undefined || !isMessageId(idsOrKeys[0])) {
      const keys = idsOrKeys.map((wanted) => ({ wanted }));
      return this.#queue.change("cancel in", removeByKey, {}, { rows: keys });
    }
    const addresses = idsOrKeys.filter(isMessageId).map((id) => ({ wanted: parseMessageId(id) }));
    return this.#queue.change("cancel in", removeById, {}, { rows: addresses });
  }
}
