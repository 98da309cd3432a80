import { ClosedError, type DelaylineError } from "../../errors.ts";
import type { Consumer } from "../../queue/consuming/consumer.ts";
import { Iteration } from "../../queue/consuming/iteration.ts";
import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";
import type { WaitOptions } from "../../queue/consuming/waiters.ts";
import type { Work } from "../../redis/troubles.ts";
import type { Delivered, Deliverer } from "./deliverer.ts";
import type { Delivery } from "./delivery.ts";
import type { GroupFace } from "../group/group.ts";
import { handle, type BatchHandler, type ReliableHandler } from "./handling.ts";
import { Lanes } from "./lanes.ts";
import { RoutedSubscription } from "./routed-subscription.ts";
import { Running } from "./running.ts";
import { Router } from "./router.ts";
import {
  checkBatchSubscribe,
  checkReliableSubscribe,
  checkRoute,
  type BatchSubscribeOptions,
  type ReliableSubscribeOptions,
  type RouteOptions,
} from "./subscribe-options.ts";
import { UnknownCounts } from "./unknown-counts.ts";

/** What a handle of a reliable queue asks of it. */
export type ConsumingFace<T> = Pick<Consuming<T>, keyof Consuming<T>>;

/** The ways in which one handle of a reliable queue brings deliveries to the user's code. */
export class Consuming<T> {
  readonly #queue: string;
  readonly #group: GroupFace;
  readonly #deliverer: Deliverer<T>;
  readonly #consumers: Set<Consumer>;
  readonly #takes: Work;
  readonly #report: (error: DelaylineError) => void;

  constructor(
    queue: string,
    group: GroupFace,
    deliverer: Deliverer<T>,
    host: {
      /** Those that are waited for when the client closes. */
      readonly consumers: Set<Consumer>;
      /** How the takes of subscriptions get on: nobody awaits them. */
      readonly takes: Work;
      readonly report: (error: DelaylineError) => void;
    },
  ) {
    this.#queue = queue;
    this.#group = group;
    this.#deliverer = deliverer;
    this.#consumers = host.consumers;
    this.#takes = host.takes;
    this.#report = host.report;
  }

  /** Takes deliveries that the user settles; none if none came in time. */
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
    const router = new Router(routes);
    const counts = new UnknownCounts();
    const find = ({ delivery: { key } }: Delivered<T>) => router.find(key);
    const settleUnknown = async ({ held, delivery: { key } }: Delivered<T>): Promise<void> => {
      const name = router.nameOf(key);
      counts.count(name);
      if (unknown === "ack") await this.#deliverer.finish(held);
      else if (unknown === "leave") await this.#deliverer.release(held, LEFT);
      else await this.#deliverer.bury(held, `no route takes "${name}"`);
    };
    const handler: ReliableHandler<T> = (payload, delivery) =>
      router.find(delivery.key)?.(payload, delivery);
    const handling = this.#single(handler, concurrency, rest);
    const run = async (batch: readonly Delivered<T>[], closing: AbortSignal) => {
      const [delivered] = batch;
      if (delivered !== undefined && find(delivered) === undefined) await settleUnknown(delivered);
      else await handling.handle(batch, closing);
    };
    return this.#attend(new RoutedSubscription({ ...handling, handle: run }, counts.entries));
  }

  /** Deliveries one by one. A lease lasts while the body of the loop runs, and then for a visibility timeout. */
  async *iterate(): AsyncGenerator<Delivery<T>, void, void> {
    let last: Delivered<T> | undefined;
    const limitLast = () => {
      if (last !== undefined) this.#deliverer.limit(last);
    };
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
        work = () => {
          throw error;
        };
      }
      return lanes.run(lane, () => handle(batch, work, payload, closing, host));
    };
    return this.#handling(1, run, concurrency);
  }

  /** Takes `max` at most for each call of `run`. */
  #handling(
    max: number,
    run: (batch: readonly Delivered<T>[], closing: AbortSignal) => Promise<void>,
    concurrency: number,
  ): Handling<readonly Delivered<T>[]> {
    const [queue, takes, report, deliverer] = [
      this.#queue,
      this.#takes,
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
        void deliverer.giveUp(held, new ClosedError("the subscription"));
      }
    };
    return { queue, take, takes, handle: handleBatch, abandon, concurrency, report };
  }

  get #host() {
    return { queue: this.#queue, deliverer: this.#deliverer, report: this.#report };
  }

  /** From now on the client's `close()` waits for it. */
  #attend<One extends Consumer>(consumer: One): One {
    this.#consumers.add(consumer);
    void consumer.ended.then(() => this.#consumers.delete(consumer));
    return consumer;
  }
}

/** @throws {TypeError} if it is neither a text nor undefined, as that of a function which is async against its type. */
function laneOf(value: unknown): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  if (value instanceof Promise) value.catch(() => {});
  throw new TypeError(`orderBy must return a string or undefined, got ${typeof value}`);
}

/** Milliseconds until a message that was left for others comes back. */
const LEFT = 1000;
