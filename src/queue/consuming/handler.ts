import { HandlerError, type DelaylineError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import { handlings, tracedQuietly, type HandleEvent } from "../../observe/events.ts";

/** What a handler is told besides its payload. */
export interface HandlerContext {
  /**
   * Aborted when the subscription or the client begins to close, which then waits for the handler. For
   * work that can be cut short: what the handler has in hand has left Redis. In a queue that is consumed exclusively also
   * when this process loses the partition: another one may handle messages of the same key now.
   */
  readonly signal: AbortSignal;
  /**
   * Of a queue that is consumed exclusively: the fence of the partition that the message is from. It grows each time
   * another process takes the partition. Give it to whatever you write to, which can then refuse a process that was
   * paused and does not know yet that it has lost the partition. Otherwise undefined.
   */
  readonly fence?: number | undefined;
}

/** Called with each payload; the next follows when it has returned and its promise is settled. */
export type Handler<T> = (payload: T, context: HandlerContext) => unknown;

/** Called with what a handler threw, and with the payload that it was given. */
export type OnHandlerError<T> = (error: unknown, payload: T) => unknown;

/**
 * Runs a handler, `work`, and tells who listens; resolves or rejects as it does. Callers ask `handlings.hasSubscribers`
 * first, and count themselves: each closure and each promise more is felt where nobody listens.
 */
export function toldHandling(
  work: () => unknown,
  { queue }: Counters,
  told: Pick<HandleEvent, "group" | "messages">,
): Promise<unknown> {
  return tracedQuietly(handlings, { queue, ...told }, async () => await work());
}

/**
 * Whether a handler was cut short as its subscription closed: it threw the reason of that abort, or what the platform throws for it,
 * an error with that cause.
 */
export function isCutShortBy({ aborted, reason }: AbortSignal, error: unknown): boolean {
  return aborted && (error === reason || (error instanceof Error && error.cause === reason));
}

/** Tells of a handler's failure: `onError`, or else an `error` event. Never rejects. */
export async function tellFailure<T>(
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
