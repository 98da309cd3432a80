import type { DelaylineError } from "../../errors.ts";
import { handlings } from "../../observe/events.ts";
import {
  isCutShortBy,
  tellFailure,
  toldHandling,
  type OnHandlerError,
} from "../../queue/consuming/handler.ts";
import { toldOf, type Deliverer, type Delivered } from "./deliverer.ts";
import type { Delivery } from "./delivery.ts";
import type { Held } from "../group/held.ts";
import { RejectError } from "./reject-error.ts";

/** Called with each payload and its delivery. It is acknowledged when the handler has returned. */
export type ReliableHandler<T> = (payload: T, delivery: Delivery<T>) => unknown;

/** Called with several deliveries at once. They are acknowledged when the handler has returned. */
export type BatchHandler<T> = (deliveries: readonly Delivery<T>[]) => unknown;

/** What runs a handler. */
export interface HandlingHost<T> {
  readonly queue: string;
  readonly deliverer: Deliverer<T>;
  readonly report: (error: DelaylineError) => void;
}

/** And what tells of its failure. */
type FailureHost<T, Input> = HandlingHost<T> & {
  readonly onError: OnHandlerError<Input> | undefined;
};

/**
 * Runs a handler, `work`, on deliveries, and settles those that it has not settled itself: if it returns they are acknowledged;
 * if it throws they are retried; if it throws a {@link RejectError} they are dead. If it throws the reason with which
 * the subscription was closed, it has been cut short, and they go back as if they had not been delivered.
 *
 * `input` is what `onError` is told. Never rejects; resolves when Redis has said what became of them, or the client has
 * tried long enough as it closes.
 */
export async function handle<T, Input>(
  delivered: readonly Delivered<T>[],
  work: () => unknown,
  input: Input,
  closing: AbortSignal,
  host: FailureHost<T, Input>,
): Promise<void> {
  const { deliverer } = host;
  const { counters } = deliverer;
  // It had to wait for another one of its key.
  if (closing.aborted) {
    await each(delivered, (held) => deliverer.release(held));
    return;
  }
  for (const { held } of delivered) held.isGiven = true;
  const startedAt = performance.now();
  try {
    await (handlings.hasSubscribers ? told(work, deliverer, delivered) : work());
  } catch (error) {
    counters.handled(startedAt);
    await settleFailed(delivered, error, input, closing, host);
    return;
  }
  counters.handled(startedAt);
  await each(delivered, (held) => deliverer.finish(held));
}

function told(
  work: () => unknown,
  { counters, group }: Pick<Deliverer<unknown>, "counters" | "group">,
  delivered: readonly Delivered<unknown>[],
): Promise<unknown> {
  return toldHandling(work, counters, { group, messages: delivered.map(toldOf) });
}

/** Settles what a handler has failed with, and tells of its failure. */
async function settleFailed<T, Input>(
  delivered: readonly Delivered<T>[],
  error: unknown,
  input: Input,
  closing: AbortSignal,
  host: FailureHost<T, Input>,
): Promise<void> {
  const { deliverer } = host;
  const { counters } = deliverer;
  const isCutShort = isCutShortBy(closing, error);
  if (error instanceof RejectError || !isCutShort) counters.failed++;
  if (error instanceof RejectError) {
    await each(delivered, (held) => deliverer.bury(held, textOf(error)));
  } else if (isCutShort) {
    await each(delivered, (held) => deliverer.release(held));
  } else {
    const failure = { error, reason: textOf(error) };
    await each(delivered, (held) => deliverer.fail(held, failure));
    await tellFailure(error, input, host);
  }
}

/** Settles each; mostly it is one. */
function each(
  delivered: readonly Delivered<unknown>[],
  settle: (held: Held) => Promise<unknown>,
): Promise<unknown> {
  const [first] = delivered;
  if (first !== undefined && delivered.length === 1) return settle(first.held);
  return Promise.all(delivered.map(({ held }) => settle(held)));
}

/** What a dead letter says of what a handler threw. A class of the user's may have made its message anything. */
function textOf(error: unknown): string {
  if (error instanceof Error) {
    const texts: unknown[] = [error.message, error.name];
    return (
      (texts.find((text) => typeof text === "string" && text !== "") as string | undefined) ??
      "Error"
    );
  }
  return typeof error === "string"
    ? error
    : `the handler threw ${error === null ? "null" : typeof error}`;
}
