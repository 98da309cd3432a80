import { ClosedError, type DecodeError, type DelaylineError } from "../../errors.ts";
import type { Counters } from "../../observe/counters.ts";
import { takes, tracedQuietly, type TakeEvent } from "../../observe/events.ts";
import { takeBatch, type BatchWait } from "../../queue/consuming/batch.ts";
import type { Consumer } from "../../queue/consuming/consumer.ts";
import { Iteration } from "../../queue/consuming/iteration.ts";
import { Subscription, type Handling } from "../../queue/consuming/subscription.ts";
import { checkExclusiveSubscribe } from "../../queue/consuming/take-options.ts";
import { unpackTrailer, type Trailer } from "../../queue/message/trailer.ts";
import type { Payloads } from "../../queue/payloads.ts";
import type { JoinWork } from "../../redis/troubles.ts";
import type { WaitOptions } from "../../run/waiters.ts";
import type { Group, GroupSettings } from "../group/group.ts";
import type { Held } from "../group/held.ts";
import {
  Delivery,
  deliveredMessageOf,
  type Delivered,
  type DeliveryHost,
  type Follow,
} from "./delivery.ts";
import {
  handlingBy,
  Settler,
  type BatchHandler,
  type Handle,
  type ReliableHandler,
} from "./handling.ts";
import { sequenceOf, Sequences } from "./sequences.ts";
import type { RetryLadder } from "./retry-ladder.ts";
import { RoutedSubscription, RouteHandling } from "./routed-subscription.ts";
import {
  checkBatchSubscribe,
  checkReliableSubscribe,
  checkRoute,
  type BatchSubscribeOptions,
  type ReliableSubscribeOptions,
  type RouteOptions,
} from "./subscribe-options.ts";
import type { TimeLimit } from "./time-limit.ts";
import { queueTime } from "../../time/runtime.ts";

/** The open queue of a handle. */
interface Open {
  readonly queue: { readonly name: string; readonly report: (error: DelaylineError) => void };
  readonly counters: Counters;
  readonly flow: Pick<DeliveryHost, "hold">;
  /** The consumers that the closing client waits for. */
  readonly consumers: Set<Consumer>;
  /** The health of the subscriptions' takes, which no caller awaits. */
  readonly joinTakes: JoinWork;
}

/** A consumer group that takes messages, in one part of a queue or in several. */
export type TakingGroup = Pick<Group, "settings" | "checkTaking" | "take" | "stop">;

/** Takes one message of a partition that this process holds. Rejects with a `ClosedError` when it is given up. */
export type TakeHeld = (wait: WaitOptions) => Promise<readonly Held[]>;

/** The exclusive consumption of a queue: all partitions that this process comes to hold. */
export interface HeldPartitions {
  /** The error of every other way to take messages. */
  readonly refusal: TypeError;
  /** @throws {TypeError} if this client consumes the queue already. */
  check(): void;
  /**
   * Calls `consume` for each partition that this process comes to hold. `consume` must resolve once `take` has rejected
   * and nothing is held. Resolves when `stopping` was aborted and this process holds no partition.
   */
  run(
    settings: GroupSettings & { readonly isStrict: boolean },
    consume: (take: TakeHeld) => Promise<void>,
    stopping: AbortSignal,
  ): Promise<void>;
}

/** What one call of a handler gets; mostly one delivery. */
type Piece = readonly Held[];

/** How a handler's calls are made, and the async function that awaits them. */
interface Calls<T> {
  readonly handle: Handle<T>;
  readonly awaits: Handling<Piece>["awaits"];
}

/**
 * Takes messages for one handle of a reliable queue, makes deliveries of their bytes, and hands them to the user's code:
 * by calls, subscriptions and loops.
 *
 * A handle that consumes exclusively only has subscriptions. They take from the partitions that this process holds, with
 * one handler for each.
 */
export class Consuming<T> {
  readonly #open: Open;
  readonly #reach: { readonly group: TakingGroup };
  readonly #payloads: Payloads<T>;
  readonly #settler: Settler;
  readonly #isStrict: boolean;
  readonly #partitions: HeldPartitions | undefined;

  /** `reach` has the group to take from, which changes with the parts. With `partitions`, the handle consumes exclusively. */
  constructor(
    open: Open,
    reach: { readonly group: TakingGroup },
    payloads: Payloads<T>,
    { retry, strict }: { readonly retry: RetryLadder; readonly strict: boolean },
    follow: Follow,
    partitions?: HeldPartitions,
  ) {
    this.#open = open;
    this.#reach = reach;
    this.#payloads = payloads;
    this.#settler = new Settler(open, reach.group.settings.group, retry, follow);
    this.#isStrict = strict;
    this.#partitions = partitions;
  }

  /** Takes deliveries that the caller settles within the lease timeout or extends; none if none came in time. */
  async take(limit: number, options: BatchWait): Promise<Delivery<T>[]> {
    this.#checkShared();
    const taken = await this.#takeForUser(limit, options);
    for (const { held } of taken) {
      held.isGiven = true;
      held.isByHand = true;
      held.group.limit(held);
    }
    return taken.map(({ delivery }) => delivery);
  }

  subscribe(handler: ReliableHandler<T>, options: ReliableSubscribeOptions<T>): Subscription {
    const { concurrency, onError, orderBy, time } = checkReliableSubscribe(options);
    const partitions = this.#partitions;
    if (partitions === undefined) {
      const calls = this.#single(handler, { onError, orderBy, time });
      return this.#attend(new Subscription(this.#handling(1, calls, concurrency)));
    }
    checkExclusiveSubscribe(this.#open.queue.name, options);
    partitions.check();
    // A partition has one handler, and needs no sequences.
    const handling = this.#handling(1, this.#single(handler, { onError, time }), 1);
    return this.#attend(new Subscription(this.#exclusively(partitions, handling)));
  }

  subscribeBatch(handler: BatchHandler<T>, options: BatchSubscribeOptions<T>): Subscription {
    this.#checkShared();
    const { limit, wait, concurrency, onError, time } = checkBatchSubscribe(options);
    this.#reach.group.checkTaking();
    const calls = handlingBy<T, readonly Delivery<T>[]>({
      ...this.#host,
      inputOf: (delivered) => delivered.map(({ delivery }) => delivery),
      call: handler,
      onError,
      timeLimit: time,
    });
    return this.#attend(new Subscription(this.#handling(limit, calls, concurrency, wait)));
  }

  route(
    routes: Readonly<Record<string, ReliableHandler<T>>>,
    options: RouteOptions<T>,
  ): RoutedSubscription {
    this.#checkShared();
    const { unknown, concurrency, onError, orderBy, time } = checkRoute(options);
    const routing = new RouteHandling(routes, unknown, this.#settler);
    const { handle, awaits } = this.#single(routing.handler, { onError, orderBy, time });
    const calls = { handle: routing.around(handle), awaits };
    const handling = this.#handling(1, calls, concurrency);
    return this.#attend(new RoutedSubscription(handling, routing.unknown));
  }

  /**
   * Yields deliveries one by one. A lease lasts as long as the body of the loop runs, and for a lease timeout
   * after that if the body has not settled the delivery.
   */
  async *iterate(): AsyncGenerator<Delivery<T>, void, void> {
    this.#checkShared();
    let last: Delivered<T> | undefined;
    // The body is done with it. If it has not settled it, other code still may.
    const limitLast = () => {
      if (last === undefined) return;
      last.held.isByHand = true;
      last.held.doneWith();
      last.held.group.limit(last.held);
    };
    const take = async (signal: AbortSignal) => {
      limitLast();
      for (;;) {
        [last] = await this.#takeForUser(1, { timeout: Infinity, wait: 0, signal });
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

  /** @throws {TypeError} if the handle consumes exclusively. */
  #checkShared(): void {
    if (this.#partitions !== undefined) throw this.#partitions.refusal;
  }

  /** As {@link #take}, for calls of the user; also publishes a {@link TakeEvent}. */
  async #takeForUser(limit: number, options: BatchWait): Promise<readonly Delivered<T>[]> {
    if (!takes.hasSubscribers) return await this.#take(limit, options);
    const event: TakeEvent = { queue: this.#open.queue.name, group: this.#settler.group };
    return await tracedQuietly(takes, event, async () => {
      const taken = await this.#take(limit, options);
      event.messages = taken.map(deliveredMessageOf);
      return taken;
    });
  }

  /**
   * Takes up to `limit` messages; none if the first did not come in time. A message that the codec cannot decode becomes a dead
   * letter, and a message that was revoked or went to another process is dropped; if none is left, the wait goes on.
   */
  async #take(
    limit: number,
    { signal, timeout, wait }: BatchWait,
  ): Promise<readonly Delivered<T>[]> {
    const startedAt = timeout === Infinity ? 0 : queueTime.now();
    let left = timeout;
    for (;;) {
      const taken = await this.#gather(limit, { signal, timeout: left, wait });
      let delivered: readonly Delivered<T>[] = this.#deliverAll(
        wait === 0 ? taken : taken.filter(isHeld),
      );
      if (delivered.some(({ held }) => held.isInDoubt))
        delivered = await this.#settler.confirmed(delivered, { signal });
      if (delivered.length > 0 || taken.length === 0) return delivered;
      left = Math.max(0, timeout - (queueTime.now() - startedAt));
    }
  }

  /**
   * Takes up to `limit` messages; with a `wait`, some may be held no more. While they wait they are in flight, and their leases
   * are kept. If that is cut short, they go back as if they had never been taken.
   */
  #gather(limit: number, options: BatchWait): Promise<readonly Held[]> {
    const { group } = this.#reach;
    if (options.wait === 0) return group.take(limit, options);
    return takeBatch(limit, options, {
      take: (max, wait) => this.#reach.group.take(max, wait),
      // A suspect is handed out alone, so nothing else comes.
      roomIn: (batch) => (batch.some(isSuspect) ? 0 : limit - countHeld(batch)),
      giveBack: (batch) => {
        for (const held of batch) void held.group.settlements.release(held);
      },
      endsWhole: false,
    });
  }

  #deliverAll(taken: readonly Held[]): readonly Delivered<T>[] {
    const [first] = taken;
    if (first !== undefined && taken.length === 1) {
      // Most handlers get one message. An array that grows by one has room for sixteen more.
      const delivery = this.#deliver(first);
      return delivery === undefined ? [] : [{ held: first, delivery }];
    }
    const delivered: Delivered<T>[] = [];
    for (const held of taken) {
      const delivery = this.#deliver(held);
      if (delivery !== undefined) delivered.push({ held, delivery });
    }
    return delivered;
  }

  /** Makes a delivery; none, but a dead letter, if the codec cannot decode the message. */
  #deliver(held: Held): Delivery<T> | undefined {
    const { payload, trailer } = held.entry;
    const { counters, queue } = this.#open;
    try {
      const around = trailer.length > 0 ? unpackTrailer(trailer) : BARE;
      const collected = around.collected?.map((bytes) => this.#payloads.decode(bytes));
      const decoded = this.#payloads.decode(payload);
      counters.taken++;
      held.takenAt = held.group.now();
      counters.backlogLateness.record(held.takenAt - held.readyAt);
      return new Delivery(decoded, around, held, this.#settler, collected);
    } catch (error) {
      queue.report(error as DecodeError);
      void this.#settler.bury(held, (error as DecodeError).message);
      return undefined;
    }
  }

  #single(
    handler: ReliableHandler<T>,
    {
      onError,
      orderBy,
      time,
    }: {
      readonly onError: ReliableSubscribeOptions<T>["onError"];
      readonly orderBy?: ReliableSubscribeOptions<T>["orderBy"];
      readonly time: TimeLimit | undefined;
    },
  ): Calls<T> {
    this.#reach.group.checkTaking();
    const calls = handlingBy<T, T>({
      ...this.#host,
      inputOf: ([first]) => (first as Delivered<T>).delivery.payload,
      call: (payload, [first]) => handler(payload, (first as Delivered<T>).delivery),
      onError,
      timeLimit: time,
    });
    if (orderBy === undefined) return calls;
    const sequences = new Sequences();
    const handleInSequence: Handle<T> = async (delivered, closing) => {
      const [{ delivery }] = delivered as readonly [Delivered<T>];
      let sequence: string | undefined;
      let refuse: (() => never) | undefined;
      try {
        sequence = sequenceOf(orderBy(delivery.payload, delivery));
      } catch (error) {
        // Settled and reported as if the handler had thrown it.
        refuse = () => {
          throw error;
        };
      }
      await sequences.run(sequence, () => calls.handle(delivered, closing, refuse));
    };
    return { ...calls, handle: handleInSequence };
  }

  /**
   * Calls `handle` with up to `size` deliveries at a time. They are made just before, so that Redis gets what the first
   * of many has settled while the last are decoded. Batches that wait are filled one by one, so none waits for what another has.
   */
  #handling(
    size: number,
    { handle, awaits }: Calls<T>,
    concurrency: number,
    wait = 0,
  ): Handling<Piece> {
    const { name, report } = this.#open.queue;
    const takeBatchOf = async (options: WaitOptions) => {
      const batch = (await this.#gather(size, { ...options, wait })).filter(isHeld);
      return batch.length === 0 ? [] : [batch];
    };
    return {
      queue: name,
      report,
      concurrency,
      perLoop: concurrency,
      takes: this.#open.joinTakes(),
      take: async ({ max, ...options }) =>
        wait > 0
          ? await takeBatchOf(options)
          : inPieces(await this.#reach.group.take(max * size, options), size),
      handle: (piece, closing) => {
        const delivered = this.#deliverAll(piece);
        return delivered.length === 0 ? DONE : handle(delivered, closing);
      },
      awaits,
      interrupt: (all, reason) => {
        for (const held of all.flat()) held.abort(reason);
      },
      abandon: (all) => {
        const why = new ClosedError("the subscription");
        for (const held of all.flat()) void held.group.settlements.giveUp(held, why);
      },
    };
  }

  /** Takes from the partitions that this process comes to hold instead, with one loop for each. */
  #exclusively(partitions: HeldPartitions, handling: Handling<Piece>): Handling<Piece> {
    const settings = { ...this.#reach.group.settings, isStrict: this.#isStrict };
    return {
      ...handling,
      run: (loop, stopping) => {
        const consume = (take: TakeHeld) => loop(async (wait) => inPieces(await take(wait), 1));
        return partitions.run(settings, consume, stopping);
      },
      // A message that was given back would be behind later ones. The partition is held until its handler ends.
      abandon: () => {},
    };
  }

  get #host() {
    const { name, report } = this.#open.queue;
    return { queue: name, settler: this.#settler, report };
  }

  /** Makes the client's `close()` wait for a consumer. */
  #attend<One extends Consumer>(consumer: One): One {
    const { consumers } = this.#open;
    consumers.add(consumer);
    void consumer.ended.then(() => consumers.delete(consumer));
    return consumer;
  }
}

function isHeld(held: Held): boolean {
  return held.isHeld;
}

function isSuspect(held: Held): boolean {
  return held.isSuspect;
}

function countHeld(all: readonly Held[]): number {
  return all.reduce((count, held) => count + (held.isHeld ? 1 : 0), 0);
}

/** Cuts a list into pieces of `size` elements, the last of which may be shorter. */
function inPieces<One>(all: readonly One[], size: number): One[][] {
  if (size === 1) return all.map((one) => [one]);
  const pieces: One[][] = [];
  for (let i = 0; i < all.length; i += size) pieces.push(all.slice(i, i + size));
  return pieces;
}

const DONE = Promise.resolve();

/** The trailer of most messages: nothing. One object for all saves an allocation each. */
const BARE: Pick<Trailer, "key" | "headers" | "collected"> = { key: undefined, headers: undefined };
