import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";

/** A subscription that calls a handler by the beginning of each message's key; see `ReliableQueue.route`. */
export class RoutedSubscription extends Subscription {
  /** How many messages no route took, by the first three segments of their keys; `""` for no key. Changes as more come. */
  readonly unknown: ReadonlyMap<string, number>;

  /** @internal Use `ReliableQueue.route`. */
  constructor(handling: Handling<unknown>, unknown: ReadonlyMap<string, number>) {
    super(handling);
    this.unknown = unknown;
  }
}
