import { offers, traced, type OfferEvent } from "../observe/events.ts";
import { checkedHeaders, type MessageHeaders } from "../queue/message/headers.ts";
import type { DelayedFace } from "./delayed-messages.ts";
import type { Offering, OfferResult } from "./offer-batch.ts";

/**
 * Makes offers, and tells who listens. The headers that a listener adds go with each message; its own win.
 *
 * Callers ask `offers.hasSubscribers` first.
 */
export function tellOffers<Result>(
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

/** Makes one offer, and tells who listens; see {@link tellOffers}. */
export function tellOffer(
  queue: string,
  messages: Pick<DelayedFace, "takesHeaders" | "offer">,
  offering: Offering,
  signal?: AbortSignal,
): Promise<OfferResult> {
  const { takesHeaders } = messages;
  return tellOffers({ queue, takesHeaders }, [offering], ([told = offering]) =>
    messages.offer(told, signal),
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

/** Headers that are legal, or others: an offer does not fail because somebody listens. */
function checkedOr(
  otherwise: MessageHeaders | undefined,
  headers: MessageHeaders,
): MessageHeaders | undefined {
  try {
    return checkedHeaders(headers);
  } catch {
    return otherwise;
  }
}
