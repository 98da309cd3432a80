import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";
import type { Delivered } from "./delivery.ts";
import type { Handle, ReliableHandler, Settler } from "./handling.ts";
import { Router, UnknownCounts } from "./router.ts";
import type { RouteOptions } from "./subscribe-options.ts";

/** A subscription that chooses the handler by the beginning of each message's key; see `ReliableQueue.route`. */
export class RoutedSubscription extends Subscription {
  /**
   * How many messages no route took, by the first three segments of their keys; `""` for messages without a key. A live
   * view. Holds 1,000 names at most, and counts all others as `"other"`.
   */
  readonly unknown: ReadonlyMap<string, number>;

  /** @internal Use `ReliableQueue.route`. */
  constructor(handling: Handling<any>, unknown: ReadonlyMap<string, number>) {
    super(handling);
    this.unknown = unknown;
  }
}

/** Hands each message to the handler of its route, and settles the messages that no route takes. */
export class RouteHandling<T> {
  readonly #router: Router<ReliableHandler<T>>;
  readonly #unknown: NonNullable<RouteOptions["unknown"]>;
  readonly #settler: Settler;
  readonly #counts = new UnknownCounts();

  /** @throws {TypeError} if a route is not legal. */
  constructor(
    routes: Readonly<Record<string, ReliableHandler<T>>>,
    unknown: NonNullable<RouteOptions["unknown"]>,
    settler: Settler,
  ) {
    this.#router = new Router(routes);
    this.#unknown = unknown;
    this.#settler = settler;
  }

  /** How many messages no route took; see `RoutedSubscription.unknown`. */
  get unknown(): ReadonlyMap<string, number> {
    return this.#counts.entries;
  }

  /** Calls the handler of a message's route. */
  readonly handler: ReliableHandler<T> = (payload, delivery) =>
    this.#router.find(delivery.key)?.(payload, delivery);

  /** Handles by `handle`, except messages that no route takes: settling those does not count as a call. */
  around(handle: Handle<T>): Handle<T> {
    return async (delivered, closing) => {
      const [first] = delivered;
      const isUnknown = first !== undefined && this.#router.find(first.delivery.key) === undefined;
      if (isUnknown) await this.#settleUnknown(first);
      else await handle(delivered, closing);
    };
  }

  async #settleUnknown({ held, delivery: { key } }: Delivered<T>): Promise<void> {
    const name = this.#router.nameOf(key);
    this.#counts.count(name);
    if (this.#unknown === "ack") await this.#settler.finish(held);
    else if (this.#unknown === "leave") await this.#settler.release(held, LEAVE_DELAY);
    else await this.#settler.bury(held, `no route takes "${name}"`);
  }
}

/** Milliseconds until a message that was left to other processes is ready again. */
const LEAVE_DELAY = 1000;
