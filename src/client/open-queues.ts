import { ClosedError } from "../errors.ts";
import type { QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { PartitionInfo } from "../partitions/partition-info.ts";
import type { Call } from "../queue/call.ts";
import type { CloseOptions } from "../queue/consuming/consumer.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Servers } from "../redis/server.ts";
import { OpenQueue } from "../partitions/open-queue.ts";

/** The settings that all handles of a queue share. */
type OpenSettings = Pick<QueueSettings<unknown>, "interop" | "transfer" | "partitions">;

/** To open a queue for one look. */
const LOOK: OpenSettings = { interop: "none", transfer: false, partitions: undefined };

/** The queues that a client has open, by name. */
export class OpenQueues {
  readonly #servers: Servers;
  readonly #open = new Map<string, OpenQueue>();
  /** The `interop` of each open queue. */
  readonly #interop = new WeakMap<OpenQueue, OpenSettings["interop"]>();
  #isClosing = false;
  #isClosed = false;

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  get all(): readonly OpenQueue[] {
    return [...this.#open.values()];
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
   * Opens a queue, or returns the one that is open. From then on it is partitioned, if the settings say so or it is
   * consumed exclusively.
   *
   * @throws {TypeError} if the name cannot name a queue, or the settings contradict an earlier handle's.
   * @throws {ClosedError} after {@link close}.
   */
  open(name: string, settings: OpenSettings, isExclusive = false): OpenQueue {
    this.checkOpen();
    const { interop, partitions } = settings;
    const isPartitioned = isExclusive || partitions !== undefined;
    const open = this.#open.get(name) ?? this.#newQueue(name, settings, isPartitioned);
    if (this.#interop.get(open) !== interop) {
      throw new TypeError(
        `interop of queue "${name}" must be the same for all its handles, got ${interop}`,
      );
    }
    if (isPartitioned) open.parts.expect(partitions);
    if (!this.#open.has(name)) {
      this.#open.set(name, open);
      if (this.#isClosing) void open.stopTaking();
    }
    if (settings.transfer && !this.#isClosing) open.startTransfer();
    return open;
  }

  /** Closes one queue: its handles reject from now on. Another handle of that name opens it again. */
  async closeOne(name: string): Promise<void> {
    const open = this.#open.get(name);
    if (open === undefined) return;
    this.#open.delete(name);
    await open.stopTaking();
    await open.close();
  }

  /** Opens a queue to change the number of its partitions. */
  openPartitions(name: string, partitions: number): OpenQueue {
    const known = this.#open.get(name);
    const interop = (known && this.#interop.get(known)) ?? "none";
    return this.open(name, { interop, transfer: false, partitions });
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

  /** The counters of each open queue, by name. */
  get counters(): Map<string, QueueCounters> {
    return new Map(Array.from(this.#open, ([name, { counters }]) => [name, counters.snapshot()]));
  }

  /** Closes the subscriptions of all queues, but not their loops. */
  async closeSubscriptions(options: CloseOptions): Promise<void> {
    const consumers = this.all.flatMap((open) => [...open.consumers]);
    const subscriptions = consumers.filter((consumer) => consumer instanceof Subscription);
    await Promise.all(subscriptions.map((subscription) => subscription.close(options)));
  }

  /** Whether any handler, or any body of a loop, runs. */
  get #isHandling(): boolean {
    return this.all.some(({ consumers }) => [...consumers].some(({ running }) => running > 0));
  }

  #newQueue(name: string, { interop, partitions }: OpenSettings, isPartitioned: boolean) {
    const elements = interop === "redisson" ? "members" : "addresses";
    const open = new OpenQueue(name, this.#servers, { elements, isPartitioned, partitions });
    this.#interop.set(open, interop);
    return open;
  }

  /** Looks at a queue with the partitions that it has now; closes it afterwards, unless it was open. */
  async #look<Result>(
    name: string,
    look: (open: OpenQueue) => Promise<Result>,
    call: Call | undefined,
  ): Promise<Result> {
    this.checkOpen();
    const known = this.#open.get(name);
    const open = known ?? this.#newQueue(name, LOOK, false);
    try {
      await open.parts.look(call);
      return await look(open);
    } finally {
      if (known === undefined) {
        await open.stopTaking();
        await open.close();
      }
    }
  }
}
