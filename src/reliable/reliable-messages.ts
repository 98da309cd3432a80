import { DelayedMessages, type DelayedBytes } from "../delayed/delayed-messages.ts";
import type { Due, Offering, OfferResult } from "../delayed/offering/offering.ts";
import { ClosedError, OfferError, OfferManyError, RedisError } from "../errors.ts";
import type { Hint } from "../queue/find-options.ts";
import { isMessageId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { aborted } from "../redis/call.ts";
import type { Group } from "./group/group.ts";
import type { Retries } from "./retries.ts";

/**
 * The messages of a reliable queue that are delayed or retrying.
 *
 * Look-ups ask for a delayed message first, then for a retrying one. In this order they miss none: a delayed message
 * may become a retrying one, never the other way round.
 */
export class ReliableMessages extends DelayedMessages {
  readonly #group: Group;
  readonly #retries: Retries;
  readonly #queue: Queue;

  constructor(group: Group, retries: Retries, queue: Queue) {
    super(queue);
    this.#group = group;
    this.#retries = retries;
    this.#queue = queue;
  }

  override get takesHeaders(): boolean {
    return true;
  }

  /** Creates the stream and the group first, so that no process takes the queue for a plain one. */
  override offer(offering: Offering, signal?: AbortSignal): Promise<OfferResult> {
    const making = this.#group.made(signal);
    if (making === undefined) return super.offer(offering, signal);
    return making.then(
      () => super.offer(offering, signal),
      (error: unknown) => {
        throw this.#notOffered(error, signal);
      },
    );
  }

  override async offerMany(
    offerings: readonly Offering[],
    signal?: AbortSignal,
  ): Promise<OfferResult[]> {
    try {
      await this.#group.made(signal);
    } catch (error) {
      const failure = this.#notOffered(error, signal);
      if (!(failure instanceof OfferError)) throw failure;
      throw new OfferManyError(
        this.#queue.name,
        offerings.map(() => failure),
      );
    }
    return await super.offerMany(offerings, signal);
  }

  override async cancel(idOrKey: string, signal?: AbortSignal, hint?: Hint): Promise<boolean> {
    const wasDelayed = await super.cancel(idOrKey, signal, hint);
    if (wasDelayed || !isMessageId(idOrKey)) return wasDelayed;
    return await this.#retries.cancel(idOrKey, signal, hint);
  }

  override async get(
    idOrKey: string,
    signal?: AbortSignal,
    hint?: Hint,
  ): Promise<DelayedBytes | undefined> {
    const delayed = await super.get(idOrKey, signal, hint);
    if (delayed !== undefined || !isMessageId(idOrKey)) return delayed;
    return await this.#retries.get(idOrKey, signal, hint);
  }

  override async reschedule(
    idOrKey: string,
    due: Due | "now",
    signal?: AbortSignal,
    hint?: Hint,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    const delayed = await super.reschedule(idOrKey, due, signal, hint);
    if (delayed !== undefined || !isMessageId(idOrKey)) return delayed;
    return await this.#retries.reschedule(idOrKey, due, signal, hint);
  }

  override size(signal?: AbortSignal): Promise<number> {
    return this.#retries.size(signal);
  }

  override nextDeadline(signal?: AbortSignal): Promise<number | undefined> {
    return this.#retries.nextDeadline(signal);
  }

  override async clear(signal?: AbortSignal): Promise<number> {
    return (await super.clear(signal)) + (await this.#retries.clear(signal));
  }

  /** The error of an offer whose stream and group could not be created: it was not stored. */
  #notOffered(error: unknown, signal?: AbortSignal): unknown {
    if (error instanceof ClosedError) return error;
    const cause = error instanceof RedisError ? error.cause : error;
    const reason = signal?.aborted === true ? aborted(signal, false) : cause;
    return new OfferError(`cannot offer to queue "${this.#queue.name}"`, reason, "none");
  }
}
