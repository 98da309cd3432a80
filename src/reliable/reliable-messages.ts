import { DelayedMessages } from "../delayed/delayed-messages.ts";
import type { Ground, Landing } from "../queue/landing.ts";
import type { Offering, OfferResult } from "../queue/offering.ts";
import { ClosedError, OfferError, OfferManyError, RedisError } from "../errors.ts";
import { nextDue } from "../lua/queue/next-due.ts";
import { clearRetries, sizeWithRetries } from "../lua/reliable/retries.ts";
import type { Call } from "../queue/call.ts";
import type { Queue } from "../queue/queue.ts";
import { aborted } from "../redis/call.ts";
import type { Group } from "./group/group.ts";

/** The messages of a reliable queue that are delayed or retrying. */
export class ReliableMessages extends DelayedMessages {
  readonly #group: Group;
  readonly #queue: Queue;
  /** Offers that may have to wait for stream and group. */
  readonly #pending = new Set<Promise<unknown>>();

  constructor(group: Group, queue: Queue) {
    super(queue);
    this.#group = group;
    this.#queue = queue;
  }

  override get takesHeaders(): boolean {
    return true;
  }

  /** Creates the stream and the group first, so that no process takes the queue for a plain one. */
  override offer(offering: Offering, call?: Call): Promise<OfferResult> {
    this.checkOpen();
    const making = this.#group.made(call);
    if (making === undefined) return super.offer(offering, call);
    const offer = making.then(
      () => this.offerAccepted(offering, call),
      (error: unknown) => {
        throw this.#notOffered(error, call);
      },
    );
    return this.#noted(offer);
  }

  override offerMany(offerings: readonly Offering[], call?: Call): Promise<OfferResult[]> {
    return this.#noted(this.#offerMany(offerings, call));
  }

  async #offerMany(offerings: readonly Offering[], call?: Call): Promise<OfferResult[]> {
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

  override land<Result>(
    landings: readonly Landing[],
    act: (ground: Ground) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    this.checkOpen();
    return this.#noted(this.#land(landings, act, call));
  }

  async #land<Result>(
    landings: readonly Landing[],
    act: (ground: Ground) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    await this.#group.made(call);
    return await super.land(landings, act, call);
  }

  /** Includes offers that wait for stream and group. */
  override async done(): Promise<void> {
    await Promise.all([super.done(), Promise.allSettled(this.#pending)]);
  }

  #noted<Result>(offer: Promise<Result>): Promise<Result> {
    const forget = () => this.#pending.delete(offer);
    this.#pending.add(offer);
    offer.then(forget, forget);
    return offer;
  }

  /** Counts a retrying message once for each group. O(1). */
  override size(call?: Call): Promise<number> {
    return this.#queue.read("measure", sizeWithRetries, {}, call);
  }

  override nextDeadline(call?: Call): Promise<number | undefined> {
    return this.#queue.read("look at", nextDue, {}, call);
  }

  /** Counts a retrying message once for each group. */
  override async clear(call?: Call): Promise<number> {
    const delayed = await super.clear(call);
    const retrying = await this.#queue.change("clear", clearRetries, {}, call);
    this.#queue.counters.cancelled += retrying;
    return delayed + retrying;
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
