import { removeById, removeByKey } from "../lua/delayed/remove.ts";
import type { Call } from "../queue/call.ts";
import { isMessageId, parseMessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";

/** Cancellations on their way to Redis. Those of one turn of the event loop share a script. */
export class CancelBatch {
  readonly #queue: Queue;
  readonly #batch = new TurnBatch<Wanted, boolean>({
    send: (batch) => this.#send(batch.claim()),
    kindOf: ({ idOrKey, knownFact = "" }) => `${isMessageId(idOrKey) ? "id" : "key"}${knownFact}`,
    sizeOf: ({ idOrKey }) => idOrKey.length,
    giveUp: ({ cause }) => cause,
  });

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Cancels a message by its id or business key; returns whether it was delayed. */
  add(idOrKey: string, call?: Call): Promise<boolean> {
    return this.#batch.add({ idOrKey, knownFact: call?.knownFact }, call);
  }

  /** Resolves once every cancellation made so far has settled. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  async #send(wanted: readonly Wanted[]): Promise<boolean[]> {
    const flags = await this.#remove(wanted);
    for (const wasDelayed of flags) if (wasDelayed) this.#queue.counters.cancelled++;
    return flags;
  }

  #remove(wanted: readonly Wanted[]): Promise<boolean[]> {
    const knownFact = wanted[0]?.knownFact;
    const all = wanted.map(({ idOrKey }) => idOrKey);
    const ids = all.filter(isMessageId);
    if (ids.length === 0) {
      const rows = all.map((key) => ({ wanted: key }));
      return this.#queue.change("cancel in", removeByKey, {}, { rows, knownFact });
    }
    const rows = ids.map((id) => ({ wanted: parseMessageId(id) }));
    return this.#queue.change("cancel in", removeById, {}, { rows, knownFact });
  }
}

/** A message to cancel. A script takes one `knownFact`, so only cancellations with the same one share a script. */
interface Wanted {
  readonly idOrKey: string;
  readonly knownFact: string | undefined;
}
