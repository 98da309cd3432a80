import { brand, isBranded } from "../../codecs/brand.ts";
import type { NextStep } from "../../queue/landing.ts";
import type { OfferResult } from "../../queue/offering.ts";
import { HandlerError, type DelaylineError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import { handlings } from "../../observe/events.ts";
import {
  isCutShortBy,
  reportFailure,
  tracedHandling,
  type OnHandlerError,
} from "../../queue/consuming/handler.ts";
import type { Call } from "../../queue/call.ts";
import {
  deliveredMessageOf,
  type Delivered,
  type Delivery,
  type DeliveryHost,
  type Failure,
  type Follow,
} from "./delivery.ts";
import { checkRetry, type RetryLadder } from "./retry-ladder.ts";
import { LimitedCall, type TimeLimit } from "./time-limit.ts";
import type { Held } from "../group/held.ts";
import { textOfThrown } from "../../values/thrown.ts";
import { queueTime } from "../../time/runtime.ts";

/** Called with each payload and its delivery, which is acknowledged when the handler has returned. */
export type ReliableHandler<T> = (payload: T, delivery: Delivery<T>) => unknown;

/** Called with several deliveries at once, which are acknowledged when the handler has returned. */
export type BatchHandler<T> = (deliveries: readonly Delivery<T>[]) => unknown;

/** Throw it in a handler to make the message a dead letter at once. `message` becomes the dead letter's reason. */
export class RejectError extends Error {
  // A literal, since bundlers may rename the class.
  override readonly name = "RejectError";

  static {
    brand(this, "RejectError");
  }
}

/** Whether a handler threw a RejectError of this copy of the library, or of another one. */
function isRejection(thrown: unknown): boolean {
  return isBranded(thrown, "RejectError");
}

/** The outcome of a failed delivery: a retry in `delay` milliseconds, or without a delay a dead letter. */
interface Outcome {
  readonly reason: string;
  readonly delay?: number | undefined;
}

/**
 * Settles the deliveries of one handle as its options say.
 *
 * `ack`, `nack`, `reject` and `extend` serve the user's calls, and report failures to them. The other methods serve
 * handlers, whose settlements are not awaited: they retry as `Settlements.persist` does, and do nothing if the user's
 * code has already settled the delivery. If it tried and failed, they carry on its settlement.
 */
export class Settler implements DeliveryHost {
  readonly queue: string;
  readonly group: string;
  readonly counters: Counters;
  readonly follow: Follow;
  readonly #retry: RetryLadder;
  readonly #report: (error: DelaylineError) => void;
  readonly #flow: Pick<DeliveryHost, "hold">;

  constructor(
    open: {
      readonly queue: { readonly name: string; readonly report: (error: DelaylineError) => void };
      readonly counters: Counters;
      readonly flow: Pick<DeliveryHost, "hold">;
    },
    group: string,
    retry: RetryLadder,
    follow: Follow,
  ) {
    this.follow = follow;
    this.queue = open.queue.name;
    this.counters = open.counters;
    this.group = group;
    this.#retry = retry;
    this.#report = open.queue.report;
    this.#flow = open.flow;
  }

  async hold(lane: string, duration: number, call?: Call): Promise<void> {
    await this.#flow.hold(lane, duration, call);
  }

  ack(held: Held, call?: Call): Promise<boolean> {
    return ending(held, held.group.settlements.ack(held, call));
  }

  ackAndOffer(held: Held, step: NextStep, call?: Call): Promise<OfferResult[] | false> {
    return ending(held, held.group.settlements.ackAndOffer(held, step, call));
  }

  nack(held: Held, failure: Failure, call?: Call): Promise<boolean> {
    return ending(held, this.#settle(held, this.#outcomeOf(held, failure), call));
  }

  reject(held: Held, reason: string, call?: Call): Promise<boolean> {
    return ending(held, this.#settle(held, { reason }, call));
  }

  async extend(held: Held, duration: number, call?: Call): Promise<boolean> {
    const isOurs = await held.group.settlements.extend(held, call);
    // In a handler there is no time limit to move.
    if (isOurs && held.leaseEndsAt !== Infinity) held.group.limit(held, duration);
    return isOurs;
  }

  /** Acknowledges a delivery. */
  finish(held: Held): Promise<unknown> {
    return held.group.settlements.finish(held);
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

  /**
   * Asks Redis about deliveries of which one {@link Held.isInDoubt}, until none is; returns those that may be handed out.
   * Deliveries that another process has received are dropped. If Redis cannot be asked, the others are given back. Never rejects.
   */
  async confirmed<One extends { readonly held: Held }>(
    all: readonly One[],
    call?: Call,
  ): Promise<readonly One[]> {
    let left = all;
    // Asking may take as long as the lease.
    while (left.some(({ held }) => held.isInDoubt)) {
      const areOurs = await Promise.all(left.map(({ held }) => this.#confirm(held, call)));
      left = left.filter((_, i) => areOurs[i]);
    }
    return left;
  }

  async #confirm(held: Held, call?: Call): Promise<boolean> {
    try {
      return await held.group.settlements.extend(held, call);
    } catch {
      void this.release(held);
      return false;
    }
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

/** A settlement by the user's code: for a delivery that was taken by hand, it is the last use. */
function ending<Result>(held: Held, settling: Promise<Result>): Promise<Result> {
  if (!held.isByHand) return settling;
  return settling.then((isSettled) => {
    held.doneWith();
    return isSettled;
  });
}

/** What {@link handlingBy} uses of a subscription. */
interface HandlingHost<T, Input> {
  readonly queue: string;
  readonly settler: Settler;
  readonly report: (error: DelaylineError) => void;
  /** What the handler gets of deliveries. */
  readonly inputOf: (delivered: readonly Delivered<T>[]) => Input;
  /** Calls the handler. */
  readonly call: (input: Input, delivered: readonly Delivered<T>[]) => unknown;
  readonly onError: OnHandlerError<Input> | undefined;
  readonly timeLimit: TimeLimit | undefined;
}

/**
 * Runs a handler on deliveries, and then settles those that it has not settled itself. Leaves out deliveries that another process
 * has received. `refuse` throws instead of the handler. Never rejects. Resolves when Redis has replied, or when the closing client
 * has tried for long enough.
 */
export type Handle<T> = (
  delivered: readonly Delivered<T>[],
  closing: AbortSignal,
  refuse?: () => never,
) => Promise<unknown>;

/**
 * Returns a {@link Handle}, and the async function in it that awaits the handler.
 *
 * - The handler returned: the deliveries are acknowledged.
 * - It threw a {@link RejectError}: they become dead letters.
 * - It threw the reason with which `closing` was aborted: the handler was cut short, and they are given back as if they
 *   had not been delivered.
 * - It threw anything else: they are retried, and `onError` is called with the error and the handler's input.
 *
 * A delivery that was revoked has nothing left to settle, and its handler does not count as failed. If the handler threw the reason
 * of the delivery's signal, nothing is reported either.
 *
 * A handler that exceeds its time limit has failed with a `TimeLimitError`, and its slot is free. When it ends after all, nothing
 * is left to settle. An error that it throws then is reported, unless it is its signal's reason.
 *
 * Every message passes this, so a handler that returns at once costs neither an async frame, near a kilobyte, nor a
 * promise.
 */
export function handlingBy<T, Input>(host: HandlingHost<T, Input>) {
  const { settler, inputOf, call, timeLimit } = host;
  const { counters } = settler;
  const finish = (held: Held) => {
    held.doneWith();
    return settler.finish(held);
  };
  const succeeded = (delivered: readonly Delivered<T>[], startedAt: number) => {
    counters.handlerEnded(startedAt);
    return each(delivered, finish);
  };
  const awaits = async (
    returned: unknown,
    delivered: readonly Delivered<T>[],
    input: Input,
    startedAt: number,
    closing: AbortSignal,
    limited?: LimitedCall,
  ): Promise<unknown> => {
    try {
      await returned;
    } catch (error) {
      done(delivered);
      if (limited?.onEnded() === true)
        return await reportUnlessTheirs(delivered, error, input, host);
      counters.handlerEnded(startedAt);
      return await settleFailed(delivered, error, input, closing, host);
    }
    const wasGivenUp = limited?.onEnded() === true;
    if (wasGivenUp) done(delivered);
    return wasGivenUp ? undefined : await succeeded(delivered, startedAt);
  };
  const awaitsInTime = (
    returned: unknown,
    delivered: readonly Delivered<T>[],
    input: Input,
    startedAt: number,
    closing: AbortSignal,
    limit: TimeLimit,
  ): Promise<unknown> => {
    const limited = new LimitedCall(settler.queue, limit, {
      onOver: (error) => {
        counters.timedOut++;
        for (const { held } of delivered) held.abort(error);
      },
      onStuck: (error) => {
        counters.handlerEnded(startedAt);
        // The user's code is not done with it: whoever revokes such a message, and waits, waits on.
        return settleFailed(delivered, error, input, closing, host);
      },
    });
    const settled = awaits(returned, delivered, input, startedAt, closing, limited);
    return limited.within(startedAt, settled);
  };
  const handle: Handle<T> = (delivered, closing, refuse) => {
    // The subscription closed while this handler waited for another one of its sequence, or its partition was lost.
    if (closing.aborted || delivered[0]?.held.lease?.isOurs === false) {
      return each(delivered, (held) => settler.release(held));
    }
    if (delivered.some(isInDoubt)) return handleConfirmed(delivered, closing, refuse);
    for (const { held } of delivered) held.isGiven = true;
    const input = inputOf(delivered);
    const startedAt = queueTime.now();
    let returned: unknown;
    try {
      returned = handlings.hasSubscribers
        ? traced(refuse ?? (() => call(input, delivered)), settler, delivered)
        : (refuse ?? call)(input, delivered);
    } catch (error) {
      counters.handlerEnded(startedAt);
      done(delivered);
      return settleFailed(delivered, error, input, closing, host);
    }
    if (returned === undefined) return succeeded(delivered, startedAt);
    return timeLimit === undefined
      ? awaits(returned, delivered, input, startedAt, closing)
      : awaitsInTime(returned, delivered, input, startedAt, closing, timeLimit);
  };
  const handleConfirmed: Handle<T> = async (delivered, closing, refuse) => {
    const ours = await settler.confirmed(delivered);
    if (ours.length > 0) await handle(ours, closing, refuse);
  };
  return { handle, awaits };
}

function isInDoubt({ held }: Delivered<unknown>): boolean {
  return held.isInDoubt;
}

function traced(
  work: () => unknown,
  { counters, group }: Settler,
  delivered: readonly Delivered<unknown>[],
): Promise<unknown> {
  return tracedHandling(work, counters, { group, messages: delivered.map(deliveredMessageOf) });
}

/** The user's code has finished with deliveries. */
function done(delivered: readonly Delivered<unknown>[]): void {
  for (const { held } of delivered) held.doneWith();
}

/** Settles deliveries whose handler threw, and reports the error. */
async function settleFailed<T, Input>(
  delivered: readonly Delivered<T>[],
  error: unknown,
  input: Input,
  closing: AbortSignal,
  host: HandlingHost<T, Input>,
): Promise<void> {
  const { settler } = host;
  const { counters } = settler;
  const isCutShort = isCutShortBy(closing, error);
  if (delivered.every(({ held }) => held.isRevoked)) {
    if (!isRejection(error) && !isCutShort) await reportUnlessTheirs(delivered, error, input, host);
    return;
  }
  const held = delivered.filter(isHeld);
  if (isRejection(error)) {
    await each(delivered, (one) => settler.bury(one, textOfThrown(error)));
  } else if (isCutShort) {
    await each(delivered, (one) => settler.release(one));
  } else {
    const failure = { error, reason: textOfThrown(error) };
    await each(delivered, (one) => settler.fail(one, failure));
  }
  // One that was revoked just now was in flight no more, and its notice may come later.
  const wasGone = held.length > 0 && held.every(({ held: { isLost } }) => isLost);
  const isFailure = isRejection(error) || !isCutShort;
  if (isFailure && !wasGone) counters.failed++;
  if (isFailure && !isRejection(error)) await reportFailure(error, input, host);
}

/** Reports the error of a handler whose deliveries have nothing left to settle, unless it is the reason of their signals. */
async function reportUnlessTheirs<T, Input>(
  delivered: readonly Delivered<T>[],
  error: unknown,
  input: Input,
  host: HandlingHost<T, Input>,
): Promise<void> {
  const isTheirs = delivered.some(({ held }) => isCutShortBy(held.signal, error));
  if (!isTheirs) await reportFailure(error, input, host);
}

function isHeld({ held }: Delivered<unknown>): boolean {
  return held.isHeld;
}

/** Settles each delivery. Usually there is one, which costs no array. */
function each(
  delivered: readonly Delivered<unknown>[],
  settle: (held: Held) => Promise<unknown>,
): Promise<unknown> {
  const [first] = delivered;
  if (first !== undefined && delivered.length === 1) return settle(first.held);
  return Promise.all(delivered.map(({ held }) => settle(held)));
}
