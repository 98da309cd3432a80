import { offers, traced, type OfferEvent } from "../observe/events.ts";
import type { Call } from "../queue/call.ts";
import { checkedHeaders, type MessageHeaders } from "../queue/message/headers.ts";
import type { Offers } from "../delayed/delayed-messages.ts";
import type { Offering, OfferResult } from "../queue/offering.ts";

/**
 * Makes offers, and publishes them on the tracing channel. Headers that a listener adds go with each message, whose own
 * headers win.
 *
 * Callers check `offers.hasSubscribers` first.
 */
export function traceOffers<Result>(
  { queue, takesHeaders }: { readonly queue: string; readonly takesHeaders: boolean },
  offerings: readonly Offering[],
  offer: (offerings: readonly Offering[]) => Promise<Result>,
): Promise<Result> {
  const [first] = offerings;
  const event: OfferEvent = {
    queue,
    count: offerings.length,
    key: offerings.length === 1 ? first?.key : undefined,
    headers: takesHeaders ? {} : undefined,
  };
  return traced(offers, event, () => offer(withHeaders(offerings, event.headers)));
}

/** Makes one offer, and publishes it on the tracing channel; see {@link traceOffers}. */
export function traceOffer(
  queue: string,
  messages: Pick<Offers, "takesHeaders" | "offer">,
  offering: Offering,
  call?: Call,
): Promise<OfferResult> {
  const { takesHeaders } = messages;
  return traceOffers({ queue, takesHeaders }, [offering], ([sent = offering]) =>
    messages.offer(sent, call),
  );
}

function withHeaders(
  offerings: readonly Offering[],
  more: MessageHeaders | undefined,
): readonly Offering[] {
  const added = more && checkedOr(undefined, more);
  if (added === undefined) return offerings;
  return offerings.map((offering) => {
    const { headers: own } = offering;
    const headers = own === undefined ? added : checkedOr(own, { ...added, ...own });
    return { ...offering, headers };
  });
}

/** Returns `headers` if they are legal, otherwise `fallback`: an offer must not fail because of a listener. */
function checkedOr(
  fallback: MessageHeaders | undefined,
  headers: MessageHeaders,
): MessageHeaders | undefined {
  try {
    return checkedHeaders(headers);
  } catch {
    return fallback;
  }
}
