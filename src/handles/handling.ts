import type { DelaylineError } from "../errors.ts";
import type { Counters } from "../observe/counters.ts";
import { handlings, PLAIN_MESSAGE } from "../observe/events.ts";
import {
  isCutShortBy,
  reportFailure,
  tracedHandling,
  type Handler,
  type HandlerContext,
  type OnHandlerError,
} from "../queue/consuming/handler.ts";

/** The part of a subscription that {@link handle} uses. */
export interface HandlingHost<T> {
  readonly queue: string;
  readonly counters: Counters;
  readonly onError: OnHandlerError<T> | undefined;
  readonly report: (error: DelaylineError) => void;
}

/** Runs a handler on a payload, counts the outcome, and reports a failure. Never rejects. */
export async function handle<T>(
  handler: Handler<T>,
  payload: T,
  context: HandlerContext,
  closing: AbortSignal,
  host: HandlingHost<T>,
): Promise<void> {
  const { counters } = host;
  const startedAt = performance.now();
  try {
    await (handlings.hasSubscribers
      ? tracedHandling(() => handler(payload, context), counters, DESCRIBED)
      : handler(payload, context));
    counters.handled(startedAt);
  } catch (error) {
    counters.handled(startedAt);
    if (!isCutShortBy(closing, error)) counters.failed++;
    await reportFailure(error, payload, host);
  }
}

const DESCRIBED = { group: undefined, messages: [PLAIN_MESSAGE] } as const;
