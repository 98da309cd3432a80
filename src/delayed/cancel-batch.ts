import { remove } from "../lua/delayed/remove.ts";
import type { Call } from "../queue/call.ts";
import { whichOf } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { TurnBatch } from "../queue/turn-batch.ts";

/** Cancellations on their way to Redis. Those of one turn of the event loop share a script. */
export class CancelBatch {
  readonly #queue: Queue;
  readonly #batch = new TurnBatch<Wanted, boolean>({
    send: (batch) => this.#send(batch.claim()),
    kindOf: ({ knownFact = "" }) => knownFact,
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
    const rows = wanted.map(({ idOrKey }) => whichOf(idOrKey));
    const knownFact = wanted[0]?.knownFact;
    const flags = await this.#queue.change("cancel in", remove, {}, { rows, knownFact });
    for (const wasDelayed of flags) if (wasDelayed) this.#queue.counters.cancelled++;
    return flags;
  }
}

/** A message to cancel. A script takes one `knownFact`, so only cancellations with the same one share a script. */
interface Wanted {
  readonly idOrKey: string;
  readonly knownFact: string | undefined;
}
