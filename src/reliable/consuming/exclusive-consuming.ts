import type { DelaylineError } from "../../errors.ts";
import type { Consumer } from "../../queue/consuming/consumer.ts";
import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";
import { checkExclusiveSubscribe } from "../../queue/consuming/take-options.ts";
import type { Work } from "../../redis/troubles.ts";
import type { ConsumingFace } from "./consuming.ts";
import type { Delivered, Deliverer } from "./deliverer.ts";
import type { Delivery } from "./delivery.ts";
import type { ExclusiveDeliveries, ExclusiveSource } from "./exclusive-deliveries.ts";
import type { GroupFace } from "../group/group.ts";
import { handle, type ReliableHandler } from "./handling.ts";
import { Running } from "./running.ts";
import { checkReliableSubscribe, type ReliableSubscribeOptions } from "./subscribe-options.ts";

/** A delivery, and how it was taken. */
interface Item<T> {
  readonly delivered: Delivered<T>;
  readonly source: ExclusiveSource;
  readonly deliverer: Deliverer<T>;
}

/**
 * The way in which a handle that consumes exclusively brings deliveries to the user's code: one handler for each
 * partition that this process holds.
 */
export class ExclusiveConsuming<T> implements ConsumingFace<T> {
  readonly #queue: string;
  readonly #deliveries: ExclusiveDeliveries;
  readonly #delivererOf: (group: GroupFace) => Deliverer<T>;
  readonly #consumers: Set<Consumer>;
  readonly #takes: Work;
  readonly #report: (error: DelaylineError) => void;

  constructor(
    queue: string,
    deliveries: ExclusiveDeliveries,
    delivererOf: (group: GroupFace) => Deliverer<T>,
    host: {
      /** Those that are waited for when the client closes. */
      readonly consumers: Set<Consumer>;
      readonly takes: Work;
      readonly report: (error: DelaylineError) => void;
    },
  ) {
    this.#queue = queue;
    this.#deliveries = deliveries;
    this.#delivererOf = delivererOf;
    this.#consumers = host.consumers;
    this.#takes = host.takes;
    this.#report = host.report;
  }

  subscribe(handler: ReliableHandler<T>, options: ReliableSubscribeOptions<T>): Subscription {
    const { onError } = checkReliableSubscribe(options);
    checkExclusiveSubscribe(this.#queue, options);
    const [queue, report] = [this.#queue, this.#report];
    this.#deliveries.check();
    const running = new Running();
    const handling: Handling<Item<T>> = {
      queue,
      report,
      takes: this.#takes,
      concurrency: 1,
      take: () => Promise.resolve([]),
      run: (loop, stopping) =>
        this.#deliveries.run((source) => loop(this.#takingFrom(source)), stopping),
      handle: async ({ delivered, source, deliverer }, closing) => {
        if (!source.isOurs) {
          await deliverer.release(delivered.held);
          return;
        }
        const batch = [delivered];
        const { payload } = delivered.delivery;
        running.add(batch, closing);
        const work = () => handler(payload, delivered.delivery);
        await handle(batch, work, payload, closing, { queue, report, deliverer, onError });
        running.delete(batch);
      },
    };
    const subscription = new Subscription(handling);
    this.#consumers.add(subscription);
    void subscription.ended.then(() => this.#consumers.delete(subscription));
    return subscription;
  }

  /** Only a subscription takes. */
  take(): Promise<never> {
    return Promise.reject(this.#deliveries.refusal);
  }

  /** Only a subscription takes. */
  subscribeBatch(): never {
    throw this.#deliveries.refusal;
  }

  /** Only a subscription takes. */
  route(): never {
    throw this.#deliveries.refusal;
  }

  /** Only a subscription takes. */
  // oxlint-disable-next-line require-yield
  async *iterate(): AsyncGenerator<Delivery<T>, void, void> {
    await this.take();
  }

  #takingFrom(source: ExclusiveSource): Handling<Item<T>>["take"] {
    const deliverer = this.#delivererOf(source.group);
    return async (wait) => {
      const taken = await source.take(wait);
      return taken
        .flatMap((held) => deliverer.open(held))
        .map((delivered) => ({ delivered, source, deliverer }));
    };
  }
}
