import { ClosedError, type DelaylineError } from "../../errors.ts";
import type { Consumer } from "../../queue/consuming/consumer.ts";
import { Iteration } from "../../queue/consuming/iteration.ts";
import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import type { JoinWork } from "../../redis/troubles.ts";
import type { Deliverer } from "./deliverer.ts";
import type { Delivered, Delivery } from "./delivery.ts";
import type { GroupFace } from "../group/group.ts";
import { handle, type BatchHandler, type ReliableHandler } from "./handling.ts";
import { laneOf, Lanes } from "./lanes.ts";
import { RoutedSubscription } from "./routed-subscription.ts";
import { RouteHandling } from "./route-handling.ts";
import { Running } from "./running.ts";
import {
  checkBatchSubscribe,
  checkReliableSubscribe,
  checkRoute,
  type BatchSubscribeOptions,
  type ReliableSubscribeOptions,
  type RouteOptions,
} from "./subscribe-options.ts";

/** The public methods of {@link Consuming}, which exclusive handles implement in their own way. */
export type ConsumingFace<T> = Pick<Consuming<T>, keyof Consuming<T>>;

/** Hands deliveries to the user's code: the calls, subscriptions and loops of one handle of a reliable queue. */
export class Consuming<T> {
  readonly #queue: string;
  readonly #group: GroupFace;
  readonly #deliverer: Deliverer<T>;
  readonly #consumers: Set<Consumer>;
  readonly #joinTakes: JoinWork;
  readonly #report: (error: DelaylineError) => void;

  constructor(
    queue: string,
    group: GroupFace,
    deliverer: Deliverer<T>,
    host: {
      /** The consumers that the closing client waits for. */
      readonly consumers: Set<Consumer>;
      /** The health of the subscriptions' takes, which nobody awaits. */
      readonly joinTakes: JoinWork;
      readonly report: (error: DelaylineError) => void;
    },
  ) {
    this.#queue = queue;
    this.#group = group;
    this.#deliverer = deliverer;
    this.#consumers = host.consumers;
    this.#joinTakes = host.joinTakes;
    this.#report = host.report;
  }

  /** Takes deliveries that the caller settles; none if none came in time. */
  take(max: number, wait: WaitOptions): Promise<Delivery<T>[]> {
    return this.#deliverer.takeByHand(max, wait);
  }

  subscribe(handler: ReliableHandler<T>, options: ReliableSubscribeOptions<T>): Subscription {
    const { concurrency, ...rest } = checkReliableSubscribe(options);
    return this.#attend(new Subscription(this.#single(handler, concurrency, rest)));
  }

  subscribeBatch(handler: BatchHandler<T>, options: BatchSubscribeOptions<T>): Subscription {
    const { max, concurrency, onError } = checkBatchSubscribe(options);
    this.#group.checkTaking();
    const host = { ...this.#host, onError };
    const run = (batch: readonly Delivered<T>[], closing: AbortSignal) => {
      const input = batch.map(({ delivery }) => delivery);
      return handle(batch, () => handler(input), input, closing, host);
    };
    return this.#attend(new Subscription(this.#handling(max, run, concurrency)));
  }

  route(
    routes: Readonly<Record<string, ReliableHandler<T>>>,
    options: RouteOptions<T>,
  ): RoutedSubscription {
    const { unknown, concurrency, ...rest } = checkRoute(options);
    const routing = new RouteHandling(routes, unknown, this.#deliverer.settler);
    const handling = routing.around(this.#single(routing.handler, concurrency, rest));
    return this.#attend(new RoutedSubscription(handling, routing.unknown));
  }

  /**
   * Yields deliveries one by one. A lease lasts as long as the body of the loop runs, and for a visibility timeout
   * after that if the body has not settled the delivery.
   */
  async *iterate(): AsyncGenerator<Delivery<T>, void, void> {
    let last: Delivered<T> | undefined;
    const limitLast = () => last?.held.group.limit(last.held);
    const take = async (signal: AbortSignal) => {
      limitLast();
      for (;;) {
        [last] = await this.#deliverer.takeForUser(1, { timeout: Infinity, signal });
        if (last !== undefined) {
          last.held.isGiven = true;
          return last.delivery;
        }
      }
    };
    try {
      yield* this.#attend(new Iteration(take)).messages();
    } finally {
      limitLast();
    }
  }

  #single(
    handler: ReliableHandler<T>,
    concurrency: number,
    { onError, orderBy }: Pick<ReliableSubscribeOptions<T>, "onError" | "orderBy">,
  ): Handling<readonly Delivered<T>[]> {
    this.#group.checkTaking();
    const lanes = new Lanes();
    const host = { ...this.#host, onError };
    const run = (batch: readonly Delivered<T>[], closing: AbortSignal) => {
      const [{ delivery }] = batch as readonly [Delivered<T>];
      const { payload } = delivery;
      let work: () => unknown = () => handler(payload, delivery);
      if (orderBy === undefined) return handle(batch, work, payload, closing, host);
      let lane: string | undefined;
      try {
        lane = laneOf(orderBy(payload, delivery));
      } catch (error) {
        // Settled and reported as if the handler had thrown it.
        work = () => {
          throw error;
        };
      }
      return lanes.run(lane, () => handle(batch, work, payload, closing, host));
    };
    return this.#handling(1, run, concurrency);
  }

  /** Calls `run` with up to `max` deliveries at a time. Each is tracked as running until `run` ends. */
  #handling(
    max: number,
    run: (batch: readonly Delivered<T>[], closing: AbortSignal) => Promise<void>,
    concurrency: number,
  ): Handling<readonly Delivered<T>[]> {
    const [queue, takes, report, deliverer] = [
      this.#queue,
      this.#joinTakes(),
      this.#report,
      this.#deliverer,
    ];
    const running = new Running();
    const take = async (wait: WaitOptions) => {
      const batch = await deliverer.take(max, wait);
      return batch.length === 0 ? [] : [batch];
    };
    const handleBatch = async (batch: readonly Delivered<T>[], closing: AbortSignal) => {
      running.add(batch, closing);
      try {
        await run(batch, closing);
      } finally {
        running.delete(batch);
      }
    };
    const abandon = () => {
      for (const held of running.all()) {
        void held.group.settlements.giveUp(held, new ClosedError("the subscription"));
      }
    };
    return { queue, take, takes, handle: handleBatch, abandon, concurrency, report };
  }

  get #host() {
    return { queue: this.#queue, settler: this.#deliverer.settler, report: this.#report };
  }

  /** Makes the client's `close()` wait for a consumer. */
  #attend<One extends Consumer>(consumer: One): One {
    this.#consumers.add(consumer);
    void consumer.ended.then(() => this.#consumers.delete(consumer));
    return consumer;
  }
}
