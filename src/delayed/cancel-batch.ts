import {
  removeById,
  removeByIdExact,
  removeByKey,
  removeByKeyExact,
  type RemoveScript,
} from "../lua/delayed/remove.ts";
import { isMessageId, parseMessageId } from "../queue/message.ts";
import { TurnBatch } from "../queue/turn-batch.ts";

/** Sends a script that takes messages out. */
export type Remove = (
  script: RemoveScript,
  words: readonly (string | Buffer)[],
) => Promise<boolean[]>;

/**
 * Cancellations on their way to Redis. Those of one turn of the event loop travel together.
 */
export class CancelBatch {
  readonly #isExact: boolean;
  readonly #remove: Remove;
  readonly #batch = new TurnBatch<string, boolean>({
    send: (targets) => this.#send(targets),
    kindOf: (target) => (isMessageId(target) ? "id" : "key"),
    sizeOf: (target) => target.length,
  });

  constructor(isExact: boolean, remove: Remove) {
    this.#isExact = isExact;
    this.#remove = remove;
  }

  /** Cancels a message by its id or its business key; answers whether it was delayed. */
  add(idOrKey: string): Promise<boolean> {
    return this.#batch.add(idOrKey);
  }

  /** Resolves when every cancellation made so far is answered. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  #send(targets: readonly string[]): Promise<boolean[]> {
    if (targets[0] === undefined || !isMessageId(targets[0])) {
      return this.#remove(this.#isExact ? removeByKeyExact : removeByKey, targets);
    }
    const addresses = targets.filter(isMessageId).map(parseMessageId);
    return this.#remove(this.#isExact ? removeByIdExact : removeById, addresses);
  }
}
