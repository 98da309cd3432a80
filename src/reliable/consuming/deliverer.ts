import type { DecodeError, DelaylineError } from "../../errors.ts";
import { messageIdAt } from "../../queue/message/message.ts";
import type { Counters } from "../../observe/counters.ts";
import {
  takes,
  tracedQuietly,
  type DeliveredMessage,
  type TakeEvent,
} from "../../observe/events.ts";
import type { Payloads } from "../../queue/payloads.ts";
import { unpackTrailer, type Trailer } from "../../queue/message/trailer.ts";
import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import { Delivery, type Content, type DeliveryHost, type Failure } from "./delivery.ts";
import type { GroupFace } from "../group/group.ts";
import type { Held } from "../group/held.ts";
import { checkRetry, type RetryLadder } from "./retry-ladder.ts";

/** A delivery, and the bytes that it was made from. */
export interface Delivered<T> {
  readonly delivery: Delivery<T>;
  readonly held: Held;
}

/** A delivery as it is told to who listens. */
export function toldOf({ delivery, held }: Delivered<unknown>): DeliveredMessage {
  const { id, key, headers, attempt } = delivery;
  const { readyAt, takenAt } = held;
  return { id, key, headers, attempt, readyAt, takenAt };
}

/** What most messages carry besides: nothing. */
const BARE: Pick<Trailer, "key" | "headers"> = { key: undefined, headers: undefined };

/** What becomes of a delivery that has failed: it comes back in so many milliseconds, or without these it is dead. */
interface Fate {
  readonly reason: string;
  readonly delay?: number | undefined;
}

/** Makes deliveries of what one handle takes, and settles them as its options say. */
export class Deliverer<T> implements DeliveryHost {
  readonly #group: GroupFace;
  readonly #payloads: Payloads<T>;
  readonly #retry: RetryLadder;
  readonly #report: (error: DelaylineError) => void;
  readonly #warn: (error: unknown) => void;
  /** Where what it does is counted. */
  readonly counters: Counters;

  constructor(
    group: GroupFace,
    payloads: Payloads<T>,
    retry: RetryLadder,
    host: {
      readonly report: (error: DelaylineError) => void;
      /** The function that was given as `retry` has failed. */
      readonly warn: (error: unknown) => void;
      readonly counters: Counters;
    },
  ) {
    this.#group = group;
    this.#payloads = payloads;
    this.#retry = retry;
    this.#report = host.report;
    this.#warn = host.warn;
    this.counters = host.counters;
  }

  /**
   * Takes messages, `max` at most, as soon as there is one; none if none came in time. What the codec cannot read
   * becomes a dead letter, and the wait goes on.
   */
  async take(max: number, { signal, timeout }: WaitOptions): Promise<Delivered<T>[]> {
    const startedAt = timeout === Infinity ? 0 : performance.now();
    let left = timeout;
    for (;;) {
      const taken = await this.#group.take(max, { signal, timeout: left });
      const delivered = taken.flatMap((held) => this.open(held));
      if (delivered.length > 0 || taken.length === 0) return delivered;
      left = Math.max(0, timeout - (performance.now() - startedAt));
    }
  }

  /** The consumer group. */
  get group(): string {
    return this.#group.settings.group;
  }

  /** The queue's name. */
  get queue(): string {
    return this.counters.queue;
  }

  /** As {@link take}, for deliveries that the user settles. Who listens is told. */
  async takeForUser(max: number, wait: WaitOptions): Promise<Delivered<T>[]> {
    if (!takes.hasSubscribers) return await this.take(max, wait);
    const event: TakeEvent = { queue: this.queue, group: this.group };
    return await tracedQuietly(takes, event, async () => {
      const taken = await this.take(max, wait);
      event.messages = taken.map(toldOf);
      return taken;
    });
  }

  /** As {@link takeForUser}, for deliveries whose leases end by themselves. */
  async takeByHand(max: number, wait: WaitOptions): Promise<Delivery<T>[]> {
    const taken = await this.takeForUser(max, wait);
    for (const { held } of taken) {
      held.isGiven = true;
      this.#group.limit(held);
    }
    return taken.map(({ delivery }) => delivery);
  }

  /** From now on its lease ends by itself, if it is in hand. */
  limit({ held }: Delivered<T>): void {
    this.#group.limit(held);
  }

  deadlineOf(held: Held): number {
    return this.#group.now(held) + (this.#group.leaseEndsAt(held) - performance.now());
  }

  ack(held: Held, signal?: AbortSignal): Promise<boolean> {
    return this.#group.settlements.ack(held, signal);
  }

  nack(held: Held, failure: Failure, signal?: AbortSignal): Promise<boolean> {
    return this.#meet(held, this.#fateOf(held, failure), signal);
  }

  reject(held: Held, reason: string, signal?: AbortSignal): Promise<boolean> {
    return this.#meet(held, { reason }, signal);
  }

  async extend(held: Held, duration: number, signal?: AbortSignal): Promise<boolean> {
    const isOurs = await this.#group.settlements.extend(held, signal);
    // While a handler runs there is no limit that could be moved.
    if (isOurs && held.leaseEndsAt !== Infinity) this.#group.limit(held, duration);
    return isOurs;
  }

  /** Acknowledges, however often it has to try; does nothing if it was settled by hand. */
  finish(held: Held): Promise<unknown> {
    return this.ack(held).catch(() => this.#group.persist(held, () => this.ack(held)));
  }

  /** Lets it come back or die, however often it has to try; does nothing if it was settled by hand. */
  fail(held: Held, failure: Failure): Promise<void> {
    const fate = this.#fateOf(held, failure);
    return this.#group.persist(held, () => this.#meet(held, fate));
  }

  /** Makes it a dead letter, however often it has to try. */
  bury(held: Held, reason: string): Promise<void> {
    return this.#group.persist(held, () => this.reject(held, reason));
  }

  /** Gives it back as if it had not been delivered, at once or in `delay` milliseconds. */
  release(held: Held, delay = 0): Promise<void> {
    if (delay === 0) return this.#group.release(held);
    return this.#group.persist(held, () => this.#group.settlements.retry(held, delay, undefined));
  }

  /** Takes it out of the hands of a handler that nobody waits for any more. */
  giveUp(held: Held, why: Error): Promise<void> {
    return this.#group.giveUp(held, why);
  }

  /** The delivery that a message makes; none if the codec cannot read it: then it becomes a dead letter. */
  open(held: Held): Delivered<T>[] {
    const { address, payload, trailer } = held.entry;
    try {
      const { key, headers = {} } = trailer.length > 0 ? unpackTrailer(trailer) : BARE;
      const content: Content<T> = {
        id: messageIdAt(address),
        payload: this.#payloads.decode(payload),
        key,
        headers,
      };
      this.counters.taken++;
      held.takenAt = this.#group.now(held);
      this.counters.backlogLateness.record(held.takenAt - held.readyAt);
      return [{ held, delivery: new Delivery(content, held, this) }];
    } catch (error) {
      this.#report(error as DecodeError);
      void this.bury(held, (error as DecodeError).message);
      return [];
    }
  }

  #fateOf({ attempt }: Held, { error, reason, delay }: Failure): Fate {
    if (attempt >= this.#group.settings.maxDeliveries) return { reason };
    return { reason, delay: delay ?? this.#pauseAfter(attempt, error) };
  }

  #pauseAfter(attempt: number, error: unknown): number | undefined {
    try {
      return this.#retry.pauseAfter(attempt, error);
    } catch (failure) {
      this.#warn(failure);
      return checkRetry().pauseAfter(attempt, error);
    }
  }

  #meet(held: Held, { reason, delay }: Fate, signal?: AbortSignal): Promise<boolean> {
    const { settlements } = this.#group;
    if (delay === undefined) return settlements.bury(held, reason, signal);
    return settlements.retry(held, delay, reason, signal);
  }
}
