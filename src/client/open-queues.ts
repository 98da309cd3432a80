import { ClosedError, RedisError } from "../errors.ts";
import type { QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { PartitionInfo } from "../partitions/partition-info.ts";
import { callOf, type Call } from "../queue/call.ts";
import type { CloseOptions, Consumer } from "../queue/consuming/consumer.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import {
  queueSettings,
  type DelaylineOptions,
  type QueueOptions,
  type QueueSettings,
} from "../queue/options.ts";
import type { Server, Servers } from "../redis/server.ts";
import {
  reliableSettings,
  type ReliableQueueOptions,
  type ReliableSettings,
} from "../handles/reliable-options.ts";
import type { QueueDefinition } from "../handles/queue-definition.ts";
import {
  checkForecast,
  forecastOf,
  type ForecastOptions,
  type QueueForecast,
} from "../handles/forecast.ts";
import { OpenQueue } from "../partitions/open-queue.ts";
import { Patience } from "../time/patience.ts";
import { closeQueue } from "./close-queue.ts";
import { checkNoPartition } from "../partitions/ring/ring.ts";
import { otherNameOf } from "../queue/keys.ts";
import { SharedOptions } from "./shared-options.ts";

/** How an {@link OpenQueue} is made. */
type OpenSettings = Pick<QueueSettings<unknown>, "interop" | "partitions">;

/** To open a queue for one look. */
const LOOK: OpenSettings = { interop: "none", partitions: undefined };

interface Opened {
  readonly open: OpenQueue;
  readonly shared: SharedOptions;
}

/** The queues that a client has open, by name. */
export class OpenQueues {
  readonly #servers: Servers;
  readonly #options: DelaylineOptions;
  readonly #open = new Map<string, Opened>();
  /** The queues that are being closed one by one, and the end of each. */
  readonly #leaving = new Map<
    OpenQueue,
    { readonly left: Promise<void>; readonly patience: Patience }
  >();
  #isClosing = false;
  #isClosed = false;

  /** `options` are those of the client, which apply to what a queue's handles leave out. */
  constructor(servers: Servers, options: DelaylineOptions) {
    this.#servers = servers;
    this.#options = options;
  }

  /**
   * Pauses the open queues, on a server that went back to an older copy before anything else is moved or taken there. A
   * queue that also has partitions on other servers is paused there soon after.
   *
   * Rejects with ioredis's errors.
   */
  async pauseAll(server: Server, reason: string): Promise<void> {
    const queues = this.all;
    await Promise.all(queues.map(({ pauses }) => pauses.pauseFirst(server, reason)));
    if (this.#servers.length === 1) return;
    for (const { name, pauses, queue } of queues) {
      pauses.pause(undefined, reason).catch((error: unknown) => {
        queue.report(new RedisError(`cannot pause queue "${name}"`, error));
      });
    }
  }

  /** Notes in the logs of these queues that Redis went back to an older copy, whose last claim was at `foundAt` (epoch ms). */
  noteRestored(names: readonly string[], foundAt: number | undefined): void {
    const detail = foundAt === undefined ? undefined : `to ${new Date(foundAt).toISOString()}`;
    for (const { name, parts } of this.all) {
      if (!names.includes(name)) continue;
      void parts.activity.note({ what: "restored", detail, shared: `restored@${foundAt ?? 0}` });
    }
  }

  /** The open queues, and those that are being closed. */
  get all(): readonly OpenQueue[] {
    return [...Array.from(this.#open.values(), ({ open }) => open), ...this.#leaving.keys()];
  }

  /**
   * From now on only running handlers and bodies of loops may open queues, to offer and to look: this client no longer
   * takes or moves anything. The open queues stay open.
   */
  beginClosing(): void {
    this.#isClosing = true;
  }

  /** Refuses to open queues from now on. The open ones stay open. */
  close(): void {
    this.#isClosed = true;
  }

  /** @throws {ClosedError} after {@link close}, and after {@link beginClosing} while no handler and no body runs. */
  checkOpen(): void {
    if (this.#isClosed || (this.#isClosing && !this.#isHandling))
      throw new ClosedError("the client");
  }

  /**
   * Opens a queue for a handle, or returns the one that is open.
   *
   * @throws {TypeError | RangeError} if the name cannot name a queue, an option is not legal, or contradicts an earlier
   * handle's.
   * @throws {ClosedError} as {@link checkOpen}.
   */
  forHandle<T>(
    name: string,
    options: QueueOptions<T> = {},
  ): { readonly open: OpenQueue; readonly settings: QueueSettings<T> } {
    this.checkOpen();
    // As they stand, without those of other handles: an error should name what this handle has given.
    queueSettings(options, this.#options);
    const shared = this.#sharedOf(name);
    const settings = queueSettings(shared.complete(options), this.#options);
    shared.check(settings);
    const open = this.#openQueue(name, settings, shared);
    shared.add(options, settings);
    return { open, settings };
  }

  /** As {@link forHandle}, for a handle of a reliable queue. Exclusive consumption makes the queue a partitioned one. */
  forReliableHandle<T>(
    name: string,
    options: ReliableQueueOptions<T> = {},
  ): { readonly open: OpenQueue; readonly settings: ReliableSettings<T> } {
    this.checkOpen();
    reliableSettings(options, this.#options);
    const shared = this.#sharedOf(name);
    const settings = reliableSettings(shared.completeForGroup(options), this.#options);
    shared.check(settings.queue);
    shared.checkGroup(options, settings.group);
    const open = this.#openQueue(name, settings.queue, shared, settings.exclusive);
    shared.add(options, settings.queue);
    shared.addForGroup(options, settings.group);
    return { open, settings };
  }

  /** @throws {TypeError} if the queue is open by a definition with other options. */
  checkDefinition(definition: QueueDefinition): void {
    this.#open.get(definition.name)?.shared.checkDefinition(definition);
  }

  /** Notes the definition by which a queue was opened. */
  addDefinition(definition: QueueDefinition): void {
    this.#open.get(definition.name)?.shared.addDefinition(definition);
  }

  /**
   * Closes one queue, as the client does all of them: its handles reject from now on. Another handle of that name opens
   * it again. A later call may shorten the wait for handlers.
   */
  async closeOne(name: string, handlerTimeout = Infinity): Promise<void> {
    const open = this.#open.get(name)?.open;
    if (open !== undefined) {
      this.#open.delete(name);
      const patience = new Patience();
      const left = closeQueue(open, patience).finally(() => this.#leaving.delete(open));
      this.#leaving.set(open, { left, patience });
    }
    const leaving = [...this.#leaving].filter(([queue]) => queue.name === name);
    for (const [, { patience }] of leaving) patience.limit(handlerTimeout);
    await Promise.all(leaving.map(([, { left }]) => left));
  }

  /** Who takes messages of the open queues, or of one of them. */
  consumers(name?: string): Consumer[] {
    const queues = this.all.filter((queue) => name === undefined || queue.name === name);
    return queues.flatMap(({ consumers }) => [...consumers]);
  }

  /** Opens a queue to change the number of its partitions. */
  async openPartitions(name: string, partitions: number, call?: Call): Promise<OpenQueue> {
    this.checkOpen();
    // Before the queue counts as partitioned in this client, which it would stay.
    await this.#look(name, ({ flow }) => flow.checkForPartitions(call), call);
    this.checkOpen();
    const shared = this.#sharedOf(name);
    const { interop } = shared;
    return this.#openQueue(name, { interop, transfer: false, partitions }, shared);
  }

  /** Returns the numbers of each partition of a queue. A queue that is not open stays so. */
  async describePartitions(name: string, call?: Call): Promise<PartitionInfo[]> {
    return await this.#look(name, (open) => open.describe(call), call);
  }

  /**
   * Returns the numbers of a queue, whether it is plain, reliable or partitioned. A queue that is not open stays so.
   */
  async stats(name: string, call?: Call): Promise<QueueStats> {
    return await this.#look(name, (open) => open.numbers.stats(call), call);
  }

  /** Returns how many messages of a queue fall due when. A queue that is not open stays so. */
  async forecast(name: string, options: ForecastOptions): Promise<QueueForecast> {
    checkForecast(options);
    return await this.#look(name, (open) => forecastOf(open.numbers, options), callOf(options));
  }

  /** The counters of each open queue, by name. */
  get counters(): Map<string, QueueCounters> {
    return new Map(Array.from(this.#open, ([name, { open }]) => [name, open.counters.snapshot()]));
  }

  /** Closes the subscriptions of all queues, but not their loops. */
  async closeSubscriptions(options: CloseOptions): Promise<void> {
    const subscriptions = this.consumers().filter((consumer) => consumer instanceof Subscription);
    await Promise.all(subscriptions.map((subscription) => subscription.close(options)));
  }

  /** Whether any handler, or any body of a loop, runs. */
  get #isHandling(): boolean {
    return this.consumers().some(({ running }) => running > 0);
  }

  #sharedOf(name: string): SharedOptions {
    return this.#open.get(name)?.shared ?? new SharedOptions(name);
  }

  /** From then on the queue is a partitioned one, if the settings say so or it is consumed exclusively. */
  #openQueue(
    name: string,
    settings: OpenSettings & { readonly transfer: boolean },
    shared: SharedOptions,
    isExclusive = false,
  ): OpenQueue {
    const { partitions } = settings;
    const isPartitioned = isExclusive || partitions !== undefined;
    const known = this.#open.get(name)?.open;
    if (known === undefined) this.#checkName(name);
    const open = known ?? this.#newQueue(name, settings, isPartitioned);
    if (isPartitioned) open.parts.following.expect(partitions);
    if (!this.#open.has(name)) {
      this.#open.set(name, { open, shared });
      if (this.#isClosing) void open.stopTaking();
    }
    if (settings.transfer && !this.#isClosing) open.startTransfer();
    return open;
  }

  /** @throws {TypeError} if the queue has keys in common with another one. */
  #checkName(name: string): void {
    checkNoPartition(name);
    const other = otherNameOf(name);
    if (other === undefined || !this.#open.has(other)) return;
    throw new TypeError(
      `queue name must not differ from that of an open queue in braces alone, got ${JSON.stringify(name)} beside ${JSON.stringify(other)}: they would share delayed messages, but not ready ones; use one of the names in all processes`,
    );
  }

  #newQueue(name: string, { interop, partitions }: OpenSettings, isPartitioned: boolean) {
    const elements = interop === "redisson" ? "members" : "addresses";
    return new OpenQueue(name, this.#servers, { elements, isPartitioned, partitions });
  }

  /** Looks at a queue with the partitions that it has now; closes it afterwards, unless it was open. */
  async #look<Result>(
    name: string,
    look: (open: OpenQueue) => Promise<Result>,
    call: Call | undefined,
  ): Promise<Result> {
    this.checkOpen();
    const known = this.#open.get(name)?.open;
    const open = known ?? this.#newQueue(name, LOOK, false);
    try {
      // Asks at the same time: an ordinary queue mostly still is one.
      const early = open.parts.following.isOrdinary ? look(open) : undefined;
      await Promise.all([open.parts.following.look(call), early]);
      return await (open.parts.following.isOrdinary && early !== undefined ? early : look(open));
    } finally {
      if (known === undefined) {
        await open.stopTaking();
        await open.close();
      }
    }
  }
}
