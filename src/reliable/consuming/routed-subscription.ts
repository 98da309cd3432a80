import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";

/** A subscription that chooses the handler by the beginning of each message's key; see `ReliableQueue.route`. */
export class RoutedSubscription extends Subscription {
  /**
   * How many messages no route took, by the first three segments of their keys; `""` for messages without a key. A live
   * view. Holds 1,000 names at most, and counts all others as `"other"`.
   */
  readonly unknown: ReadonlyMap<string, number>;

  /** @internal Use `ReliableQueue.route`. */
  constructor(handling: Handling<unknown>, unknown: ReadonlyMap<string, number>) {
    super(handling);
    this.unknown = unknown;
  }
}
