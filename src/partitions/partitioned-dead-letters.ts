import type { CallOptions } from "../queue/call.ts";
import type { MessageId } from "../queue/message/message.ts";
import type { Payloads } from "../queue/payloads.ts";
import { DeadLetters, type DeadLetter, type RedriveOptions } from "../reliable/dead-letters.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";

/**
 * The dead letters of a partitioned reliable queue, one partition after another.
 *
 * A message becomes a dead letter in the partition that delivered it, which may not be the one that its id points to
 * now. So a call about one message asks all partitions.
 */
export class PartitionedDeadLetters<T> extends DeadLetters<T> {
  readonly #parts: Parts;
  readonly #lettersOf: (part: Part) => DeadLetters<T>;

  /** @internal */
  constructor(parts: Parts, payloads: Payloads<T>) {
    super(parts.first.queue, payloads);
    this.#parts = parts;
    this.#lettersOf = ({ queue }) => new DeadLetters<T>(queue, payloads);
  }

  override size(options?: CallOptions): Promise<number> {
    return this.#parts.sum((part) => this.#lettersOf(part).size(options), options);
  }

  override async *[Symbol.asyncIterator](): AsyncGenerator<DeadLetter<T>, void, void> {
    for (const part of await this.#parts.all()) yield* this.#lettersOf(part);
  }

  override redrive(id: MessageId | string, options?: RedriveOptions): Promise<number> {
    return this.#parts.sum((part) => this.#lettersOf(part).redrive(id, options), options);
  }

  override async remove(id: MessageId | string, options?: CallOptions): Promise<boolean> {
    const removed = await this.#parts.onAll(
      (part) => this.#lettersOf(part).remove(id, options),
      options,
    );
    return removed.includes(true);
  }

  override clear(options?: CallOptions): Promise<number> {
    return this.#parts.sum((part) => this.#lettersOf(part).clear(options), options);
  }
}
