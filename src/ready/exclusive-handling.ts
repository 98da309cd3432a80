import type { Handler } from "../queue/consuming/handler.ts";
import type { Payloads } from "../queue/payloads.ts";
import type { Handling } from "../queue/consuming/subscription.ts";
import type { JoinWork } from "../redis/troubles.ts";
import type { ExclusiveTaking, HeldTaken, TakeHeld } from "./exclusive-take.ts";
import { handle, type HandlingHost } from "./handling.ts";

/** A decoded message, and the lease that it was taken under. */
interface Item<T> {
  readonly payload: T;
  readonly held: HeldTaken;
}

/**
 * The work of a subscription to an exclusively consumed queue: a loop for each partition that this process holds.
 *
 * A message whose lease ends before its handler begins is given back.
 *
 * @throws {TypeError} if this client already has such a subscription.
 */
export function exclusiveHandling<T>(
  handler: Handler<T>,
  payloads: Payloads<T>,
  host: HandlingHost<T> & { readonly joinTakes: JoinWork; readonly exclusive: ExclusiveTaking },
): Handling<Item<T>> {
  const { queue, report, joinTakes, exclusive, counters } = host;
  exclusive.check();
  const decodingTake =
    (take: TakeHeld): Handling<Item<T>>["take"] =>
    async (wait) => {
      const [held] = await take(wait);
      if (held === undefined) return [];
      return [{ payload: await payloads.decodeTaken(held.payload), held }];
    };
  // Combine once per lease, not per message: Node keeps a combined signal as long as either source lives.
  const combined = new WeakMap<AbortSignal, AbortSignal>();
  const eitherOf = (closing: AbortSignal, lease: AbortSignal): AbortSignal => {
    const known = combined.get(lease) ?? AbortSignal.any([closing, lease]);
    combined.set(lease, known);
    return known;
  };
  return {
    queue,
    report,
    takes: joinTakes(),
    concurrency: 1,
    take: () => Promise.resolve([]),
    run: (loop, stopping) => exclusive.run((take) => loop(decodingTake(take)), stopping),
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
