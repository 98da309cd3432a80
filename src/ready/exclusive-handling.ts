import type { Handler } from "../queue/consuming/handler.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { Handling } from "../queue/consuming/subscription.ts";
import type { Work } from "../redis/troubles.ts";
import type { ExclusiveTaking, HeldTaken, TakeHeld } from "./exclusive-take.ts";
import { handle, type HandlingHost } from "./handling.ts";

/** A message, and how it was taken. */
interface Item<T> {
  readonly payload: T;
  readonly held: HeldTaken;
}

/**
 * What a subscription to an exclusively consumed queue does: a loop for each partition that this process holds.
 *
 * A message whose lease is over before the handler has begun goes back.
 *
 * @throws {TypeError} if this client has such a subscription already.
 */
export function exclusiveHandling<T>(
  handler: Handler<T>,
  payloads: Payloads<T>,
  host: HandlingHost<T> & { readonly takes: Work; readonly exclusive: ExclusiveTaking },
): Handling<Item<T>> {
  const { queue, report, takes, exclusive, counters } = host;
  exclusive.check();
  const openingOf =
    (take: TakeHeld): Handling<Item<T>>["take"] =>
    async (wait) => {
      const [held] = await take(wait);
      if (held === undefined) return [];
      return [{ payload: await payloads.decodeTaken(held.payload), held }];
    };
  // One for each lease, not for each message: Node keeps what it has combined as long as either lives.
  const combined = new WeakMap<AbortSignal, AbortSignal>();
  const eitherOf = (closing: AbortSignal, lease: AbortSignal): AbortSignal => {
    const known = combined.get(lease) ?? AbortSignal.any([closing, lease]);
    combined.set(lease, known);
    return known;
  };
  return {
    queue,
    report,
    takes,
    concurrency: 1,
    take: () => Promise.resolve([]),
    run: (loop, stopping) => exclusive.run((take) => loop(openingOf(take)), stopping),
    handle: async ({ payload, held }, closing) => {
      if (!held.isOurs) {
        held.putBack();
        return;
      }
      counters.taken++;
      const signal = eitherOf(closing, held.signal);
      await handle(handler, payload, { signal, fence: held.fence }, closing, host);
    },
  };
}
