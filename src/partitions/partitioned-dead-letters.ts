import type { MessageId } from "../queue/message/message.ts";
import type { CallOptions } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import { DeadLetters, type DeadLetter, type RedriveOptions } from "../reliable/dead-letters.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";

/**
 * The dead letters of a reliable queue in partitions, one partition after another.
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
    return this.#sum((letters) => letters.size(options), options);
  }

  override async *[Symbol.asyncIterator](): AsyncGenerator<DeadLetter<T>, void, void> {
    for (const part of await this.#parts.all()) yield* this.#lettersOf(part);
  }

  override redrive(id: MessageId | string, options?: RedriveOptions): Promise<number> {
    return this.#sum((letters) => letters.redrive(id, options), options);
  }

  override async remove(id: MessageId | string, options?: CallOptions): Promise<boolean> {
    const removed = await this.#onAll((letters) => letters.remove(id, options), options);
    return removed.includes(true);
  }

  override clear(options?: CallOptions): Promise<number> {
    return this.#sum((letters) => letters.clear(options), options);
  }

  async #sum(
    count: (letters: DeadLetters<T>) => Promise<number>,
    options?: CallOptions,
  ): Promise<number> {
    return (await this.#onAll(count, options)).reduce((sum, one) => sum + one, 0);
  }

  async #onAll<Result>(
    act: (letters: DeadLetters<T>) => Promise<Result>,
    options?: CallOptions,
  ): Promise<Result[]> {
    const parts = await this.#parts.all(options?.signal);
    return await Promise.all(parts.map((part) => act(this.#lettersOf(part))));
  }
}
