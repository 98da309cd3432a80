import { fieldOf, isError } from "../../values/thrown.ts";
import { HandlerError, type DelaylineError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import { handlings, tracedQuietly, type HandleEvent } from "../../observe/events.ts";

/** The second argument of a handler, after the payload. */
export interface HandlerContext {
  /**
   * Aborted when the subscription or the client begins to close, for work that can be cut short: closing waits for the
   * handler, whose message has left Redis.
   */
  readonly signal: AbortSignal;
}

/** Called with each payload. The next call follows once it has returned and its promise is settled. */
export type PlainHandler<T> = (payload: T, context: HandlerContext) => unknown;

/** Called with several payloads at once. */
export type PlainBatchHandler<T> = (payloads: readonly T[], context: HandlerContext) => unknown;

/** Called with what a handler threw, and with the handler's payload. */
export type OnHandlerError<T> = (error: unknown, payload: T) => unknown;

/**
 * Runs a handler (`work`) and publishes its start and end; resolves or rejects as it does. Callers check
 * `handlings.hasSubscribers` first: without subscribers, even one more closure and promise would be noticeable.
 */
export function tracedHandling(
  work: () => unknown,
  { queue }: Counters,
  described: Pick<HandleEvent, "group" | "messages">,
): Promise<unknown> {
  return tracedQuietly(handlings, { queue, ...described }, async () => await work());
}

/**
 * Whether a handler was cut short when its subscription closed: it threw the reason of the abort, or an error with that
 * cause, as Node's own functions do.
 */
export function isCutShortBy({ aborted, reason }: AbortSignal, error: unknown): boolean {
  return aborted && (error === reason || (isError(error) && fieldOf(error, "cause") === reason));
}

/** Passes a handler's failure to `onError`, or else to an `error` event. Never rejects. */
export async function reportFailure<T>(
  error: unknown,
  payload: T,
  host: {
    readonly queue: string;
    readonly onError: OnHandlerError<T> | undefined;
    readonly report: (error: DelaylineError) => void;
  },
): Promise<void> {
  const { queue, onError, report } = host;
  if (onError === undefined) {
    report(new HandlerError(queue, error));
    return;
  }
  try {
    await onError(error, payload);
  } catch (failure) {
    report(new HandlerError(queue, failure, "onError"));
  }
}
