import { DelayedMessages, type DelayedBytes } from "../delayed/delayed-messages.ts";
import type { Due, Offering, OfferResult } from "../delayed/offering/offering.ts";
import { ClosedError, OfferError, OfferManyError, RedisError } from "../errors.ts";
import type { Call } from "../queue/call.ts";
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
  override offer(offering: Offering, call?: Call): Promise<OfferResult> {
    const making = this.#group.made(call);
    if (making === undefined) return super.offer(offering, call);
    return making.then(
      () => super.offer(offering, call),
      (error: unknown) => {
        throw this.#notOffered(error, call);
      },
    );
  }

  override async offerMany(offerings: readonly Offering[], call?: Call): Promise<OfferResult[]> {
    try {
      await this.#group.made(call);
    } catch (error) {
      const failure = this.#notOffered(error, call);
      if (!(failure instanceof OfferError)) throw failure;
      throw new OfferManyError(
        this.#queue.name,
        offerings.map(() => failure),
      );
    }
    return await super.offerMany(offerings, call);
  }

  override async cancel(idOrKey: string, call?: Call): Promise<boolean> {
    const wasDelayed = await super.cancel(idOrKey, call);
    if (wasDelayed || !isMessageId(idOrKey)) return wasDelayed;
    return await this.#retries.cancel(idOrKey, call);
  }

  override async get(idOrKey: string, call?: Call): Promise<DelayedBytes | undefined> {
    const delayed = await super.get(idOrKey, call);
    if (delayed !== undefined || !isMessageId(idOrKey)) return delayed;
    return await this.#retries.get(idOrKey, call);
  }

  override async reschedule(
    idOrKey: string,
    due: Due | "now",
    call?: Call,
  ): Promise<Pick<DelayedBytes, "id" | "deadline"> | undefined> {
    const delayed = await super.reschedule(idOrKey, due, call);
    if (delayed !== undefined || !isMessageId(idOrKey)) return delayed;
    return await this.#retries.reschedule(idOrKey, due, call);
  }

  override size(call?: Call): Promise<number> {
    return this.#retries.size(call);
  }

  override nextDeadline(call?: Call): Promise<number | undefined> {
    return this.#retries.nextDeadline(call);
  }

  override async clear(call?: Call): Promise<number> {
    return (await super.clear(call)) + (await this.#retries.clear(call));
  }

  /** The error of an offer whose stream and group could not be created: it was not stored. */
  #notOffered(error: unknown, call?: Call): unknown {
    if (error instanceof ClosedError) return error;
    const cause = error instanceof RedisError ? error.cause : error;
    const signal = call?.signal;
    const reason = signal?.aborted === true ? aborted(signal, false) : cause;
    return new OfferError(`cannot offer to queue "${this.#queue.name}"`, reason, "none");
  }
}
