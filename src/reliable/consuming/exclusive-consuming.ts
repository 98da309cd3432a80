import type { DelaylineError } from "../../errors.ts";
import type { Consumer } from "../../queue/consuming/consumer.ts";
import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";
import { checkExclusiveSubscribe } from "../../queue/consuming/take-options.ts";
import type { JoinWork } from "../../redis/troubles.ts";
import type { ConsumingFace } from "./consuming.ts";
import type { Deliverer } from "./deliverer.ts";
import type { Delivered, Delivery } from "./delivery.ts";
import type { ExclusiveDeliveries, ExclusiveTake } from "./exclusive-deliveries.ts";
import { handle, type ReliableHandler } from "./handling.ts";
import { Running } from "./running.ts";
import { checkReliableSubscribe, type ReliableSubscribeOptions } from "./subscribe-options.ts";

/**
 * Hands deliveries to the user's code for a handle that consumes exclusively: only subscriptions take, with one handler
 * for each partition that this process holds.
 */
export class ExclusiveConsuming<T> implements ConsumingFace<T> {
  readonly #queue: string;
  readonly #deliveries: ExclusiveDeliveries;
  readonly #deliverer: Deliverer<T>;
  readonly #consumers: Set<Consumer>;
  readonly #joinTakes: JoinWork;
  readonly #report: (error: DelaylineError) => void;

  constructor(
    queue: string,
    deliveries: ExclusiveDeliveries,
    deliverer: Deliverer<T>,
    host: {
      /** The consumers that the closing client waits for. */
      readonly consumers: Set<Consumer>;
      readonly joinTakes: JoinWork;
      readonly report: (error: DelaylineError) => void;
    },
  ) {
    this.#queue = queue;
    this.#deliveries = deliveries;
    this.#deliverer = deliverer;
    this.#consumers = host.consumers;
    this.#joinTakes = host.joinTakes;
    this.#report = host.report;
  }

  subscribe(handler: ReliableHandler<T>, options: ReliableSubscribeOptions<T>): Subscription {
    const { onError } = checkReliableSubscribe(options);
    checkExclusiveSubscribe(this.#queue, options);
    const [queue, report, settler] = [this.#queue, this.#report, this.#deliverer.settler];
    this.#deliveries.check();
    const running = new Running();
    const handling: Handling<Delivered<T>> = {
      queue,
      report,
      takes: this.#joinTakes(),
      concurrency: 1,
      take: () => Promise.resolve([]),
      run: (loop, stopping) => this.#deliveries.run((take) => loop(this.#opening(take)), stopping),
      handle: async (delivered, closing) => {
        const batch = [delivered];
        const { payload } = delivered.delivery;
        running.add(batch, closing);
        const work = () => handler(payload, delivered.delivery);
        await handle(batch, work, payload, closing, { queue, report, settler, onError });
        running.delete(batch);
      },
    };
    const subscription = new Subscription(handling);
    this.#consumers.add(subscription);
    void subscription.ended.then(() => this.#consumers.delete(subscription));
    return subscription;
  }

  // Every other way of taking is refused.
  take(): Promise<never> {
    return Promise.reject(this.#deliveries.refusal);
  }

  subscribeBatch(): never {
    throw this.#deliveries.refusal;
  }

  route(): never {
    throw this.#deliveries.refusal;
  }

  // oxlint-disable-next-line require-yield
  async *iterate(): AsyncGenerator<Delivery<T>, void, void> {
    await this.take();
  }

  #opening(take: ExclusiveTake): Handling<Delivered<T>>["take"] {
    return async (wait) => (await take(wait)).flatMap((held) => this.#deliverer.open(held));
  }
}
