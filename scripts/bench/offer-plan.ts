/** The messages to offer. */
export interface OfferPlan {
  /** The first message's number. The others follow. */
  readonly first: number;
  readonly count: number;
  readonly due: DueBetween;
  /** Bytes per payload. Defaults to 100. */
  readonly payloadBytes?: number;
  /** Whether each has a key, by which it can be cancelled. Defaults to false. */
  readonly isKeyed?: boolean;
}

/** Whole random numbers in this range: delays in milliseconds, or instants in epoch milliseconds. */
export type DueBetween =
  | { readonly minDelay: number; readonly maxDelay: number }
  | { readonly from: number; readonly to: number };
