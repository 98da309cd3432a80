import type { DelaylineError } from "../../errors.ts";
import { handlings } from "../../observe/events.ts";
import {
  isCutShortBy,
  reportFailure,
  tracedHandling,
  type OnHandlerError,
} from "../../queue/consuming/handler.ts";
import { deliveredMessageOf, type Delivered, type Delivery } from "./delivery.ts";
import type { Held } from "../group/held.ts";
import type { Settler } from "./settler.ts";

/** Called with each payload and its delivery, which is acknowledged when the handler has returned. */
export type ReliableHandler<T> = (payload: T, delivery: Delivery<T>) => unknown;

/** Called with several deliveries at once, which are acknowledged when the handler has returned. */
export type BatchHandler<T> = (deliveries: readonly Delivery<T>[]) => unknown;

/** Throw it in a handler to make the message a dead letter at once. `message` becomes the dead letter's reason. */
export class RejectError extends Error {
  // A literal, since bundlers may rename the class.
  override readonly name = "RejectError";
}

/** The part of a subscription that {@link handle} uses. */
interface HandlingHost<Input> {
  readonly queue: string;
  readonly settler: Settler;
  readonly report: (error: DelaylineError) => void;
  readonly onError: OnHandlerError<Input> | undefined;
}

/**
 * Runs a handler, `work`, on deliveries, and then settles those that it has not settled itself:
 *
 * - It returned: they are acknowledged.
 * - It threw a {@link RejectError}: they become dead letters.
 * - It threw the reason with which `closing` was aborted: the handler was cut short, and they are given back as if they
 *   had not been delivered.
 * - It threw anything else: they are retried, and `onError` is called with the error and `input`.
 *
 * Never rejects. Resolves when Redis has replied, or when the closing client has tried for long enough.
 */
export async function handle<T, Input>(
  delivered: readonly Delivered<T>[],
  work: () => unknown,
  input: Input,
  closing: AbortSignal,
  host: HandlingHost<Input>,
): Promise<void> {
  const { settler } = host;
  const { counters } = settler;
  // The subscription closed while this handler waited for another one of its lane, or its partition was lost.
  if (closing.aborted || delivered[0]?.held.lease?.isOurs === false) {
    await each(delivered, (held) => settler.release(held));
    return;
  }
  for (const { held } of delivered) held.isGiven = true;
  const startedAt = performance.now();
  try {
    await (handlings.hasSubscribers ? traced(work, settler, delivered) : work());
  } catch (error) {
    counters.handled(startedAt);
    await settleFailed(delivered, error, input, closing, host);
    return;
  }
  counters.handled(startedAt);
  await each(delivered, (held) => settler.finish(held));
}

function traced(
  work: () => unknown,
  { counters, group }: Settler,
  delivered: readonly Delivered<unknown>[],
): Promise<unknown> {
  return tracedHandling(work, counters, { group, messages: delivered.map(deliveredMessageOf) });
}

/** Settles deliveries whose handler threw, and reports the error. */
async function settleFailed<T, Input>(
  delivered: readonly Delivered<T>[],
  error: unknown,
  input: Input,
  closing: AbortSignal,
  host: HandlingHost<Input>,
): Promise<void> {
  const { settler } = host;
  const { counters } = settler;
  const isCutShort = isCutShortBy(closing, error);
  if (error instanceof RejectError || !isCutShort) counters.failed++;
  if (error instanceof RejectError) {
    await each(delivered, (held) => settler.bury(held, textOf(error)));
  } else if (isCutShort) {
    await each(delivered, (held) => settler.release(held));
  } else {
    const failure = { error, reason: textOf(error) };
    await each(delivered, (held) => settler.fail(held, failure));
    await reportFailure(error, input, host);
  }
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

/** The reason to keep for what a handler threw. An error class of the user may have set any `message`. */
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
