import { HandlerError, type DelaylineError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import type { Call } from "../../queue/call.ts";
import type { Held } from "../group/held.ts";
import type { DeliveryHost, Failure } from "./delivery.ts";
import { checkRetry, type RetryLadder } from "./retry-ladder.ts";

/** The outcome of a failed delivery: a retry in `delay` milliseconds, or without a delay a dead letter. */
interface Outcome {
  readonly reason: string;
  readonly delay?: number | undefined;
}

/**
 * Settles the deliveries of one handle as its options say.
 *
 * `ack`, `nack`, `reject` and `extend` serve the user's calls, and report failures to them. The other methods serve
 * handlers, whose settlements nobody awaits: they retry as `Settlements.persist` does, and do nothing if the user's
 * code has settled the delivery already. If it tried to and failed, they go on with what it has asked for.
 */
export class Settler implements DeliveryHost {
  readonly queue: string;
  readonly group: string;
  readonly counters: Counters;
  readonly #retry: RetryLadder;
  readonly #report: (error: DelaylineError) => void;

  constructor(
    open: {
      readonly queue: { readonly name: string; readonly report: (error: DelaylineError) => void };
      readonly counters: Counters;
    },
    group: string,
    retry: RetryLadder,
  ) {
    this.queue = open.queue.name;
    this.counters = open.counters;
    this.group = group;
    this.#retry = retry;
    this.#report = open.queue.report;
  }

  ack(held: Held, call?: Call): Promise<boolean> {
    return held.group.settlements.ack(held, call);
  }

  nack(held: Held, failure: Failure, call?: Call): Promise<boolean> {
    return this.#settle(held, this.#outcomeOf(held, failure), call);
  }

  reject(held: Held, reason: string, call?: Call): Promise<boolean> {
    return this.#settle(held, { reason }, call);
  }

  async extend(held: Held, duration: number, call?: Call): Promise<boolean> {
    const isOurs = await held.group.settlements.extend(held, call);
    // In a handler there is no time limit to move.
    if (isOurs && held.leaseEndsAt !== Infinity) held.group.limit(held, duration);
    return isOurs;
  }

  /** Acknowledges a delivery. */
  finish(held: Held): Promise<unknown> {
    const ack = () => this.ack(held);
    return held.settleAsAsked(ack).catch(() => held.group.settlements.persist(held, ack));
  }

  /** Makes the message of a failed delivery retry, or a dead letter. */
  fail(held: Held, failure: Failure): Promise<void> {
    let outcome: Outcome | undefined;
    return held.group.settlements.persist(held, () => {
      outcome ??= this.#outcomeOf(held, failure);
      return this.#settle(held, outcome);
    });
  }

  /** Makes the message a dead letter. */
  bury(held: Held, reason: string): Promise<void> {
    return held.group.settlements.persist(held, () => this.reject(held, reason));
  }

  /** Returns the message to the group in `delay` milliseconds, as if it had not been delivered. */
  release(held: Held, delay = 0): Promise<void> {
    const { settlements } = held.group;
    if (delay === 0) return settlements.release(held);
    return settlements.persist(held, () => settlements.retry(held, delay));
  }

  #outcomeOf(held: Held, { error, reason, delay }: Failure): Outcome {
    if (held.isLast) return { reason };
    return { reason, delay: delay ?? this.#pauseAfter(held.attempt, error) };
  }

  #pauseAfter(attempt: number, error: unknown): number | undefined {
    try {
      return this.#retry.pauseAfter(attempt, error);
    } catch (failure) {
      this.#report(new HandlerError(this.queue, failure, "retry"));
      return checkRetry().pauseAfter(attempt, error);
    }
  }

  #settle(held: Held, { reason, delay }: Outcome, call?: Call): Promise<boolean> {
    const { settlements } = held.group;
    if (delay === undefined) return settlements.bury(held, reason, call);
    return settlements.retry(held, delay, reason, call);
  }
}
