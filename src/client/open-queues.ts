import { ClosedError } from "../errors.ts";
import type { QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { PartLink } from "../partitions/parts/part.ts";
import { arePartitions, type PartitionInfo } from "../partitions/partition-info.ts";
import type { Call } from "../queue/call.ts";
import type { CloseOptions } from "../queue/consuming/consumer.ts";
import { queueKeys } from "../queue/keys.ts";
import type { QueueSettings } from "../queue/options.ts";
import { Subscription } from "../queue/consuming/subscription.ts";
import { OpenPartitions } from "./open-partitions.ts";
import { OpenQueue } from "./open-queue.ts";
import type { Server } from "../redis/server.ts";

/** The settings that all handles of a queue share. */
type OpenSettings = Pick<QueueSettings<unknown>, "interop" | "transfer" | "partitions">;

/** The queues that a client has open, by name. */
export class OpenQueues {
  readonly #servers: readonly [Server, ...Server[]];
  readonly #ordinary = new Map<string, OpenQueue>();
  readonly #partitioned = new Map<string, OpenPartitions>();
  #isClosing = false;
  #isClosed = false;

  constructor(servers: readonly [Server, ...Server[]]) {
    this.#servers = servers;
  }

  get all(): readonly (OpenQueue | OpenPartitions)[] {
    return [...this.#ordinary.values(), ...this.#partitioned.values()];
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
   * Opens a queue. It is partitioned if the settings or another handle of this client say so, or if it is consumed
   * exclusively.
   *
   * @throws {TypeError} if the name cannot name a queue, or the settings contradict an earlier handle's.
   * @throws {ClosedError} after {@link close}.
   */
  open(name: string, settings: OpenSettings, isExclusive = false): OpenQueue | OpenPartitions {
    this.checkOpen();
    const { partitions } = settings;
    const isPartitioned = isExclusive || partitions !== undefined || this.#partitioned.has(name);
    const open = isPartitioned
      ? this.openPartitions(name, partitions)
      : this.openOrdinary(name, settings);
    if (settings.transfer && !this.#isClosing) open.startTransfer();
    return open;
  }

  /**
   * Opens an ordinary queue, or returns the one that is open.
   *
   * @throws {TypeError} if this client has it open as a partitioned queue, or with another `interop`.
   */
  openOrdinary(name: string, { interop }: Pick<OpenSettings, "interop">): OpenQueue {
    const elements = interop === "redisson" ? "members" : "addresses";
    if (this.#partitioned.has(name)) {
      throw new TypeError(`queue "${name}" is open as a partitioned queue in this client`);
    }
    let open = this.#ordinary.get(name);
    if (open === undefined) {
      open = new OpenQueue(name, elements, this.#servers[0]);
      this.#ordinary.set(name, open);
      if (this.#isClosing) void open.stopTaking();
    } else if (open.queue.layout.elements !== elements) {
      throw new TypeError(
        `interop of queue "${name}" must be the same for all its handles, got ${interop}`,
      );
    }
    return open;
  }

  /**
   * Opens another queue, to poll it together with an open one.
   *
   * @throws {TypeError} if one of the two is partitioned.
   */
  openBeside(open: OpenQueue | OpenPartitions, name: string, settings: OpenSettings): OpenQueue {
    if (open instanceof OpenPartitions) {
      const { queue } = open;
      throw new TypeError(`queue "${queue.name}" is partitioned: it cannot be polled with others`);
    }
    const other = this.openOrdinary(name, settings);
    if (settings.transfer && !this.#isClosing) other.startTransfer();
    return other;
  }

  /** Returns the numbers of each partition of a queue. A queue that is not open as a partitioned one stays so. */
  async describePartitions(name: string, call?: Call): Promise<PartitionInfo[]> {
    this.checkOpen();
    const open = this.#partitioned.get(name);
    if (open !== undefined) return await open.describe(call);
    const parts = this.#newPartitions(name, undefined);
    return await briefly(parts, () => parts.describe(call));
  }

  /**
   * Returns the numbers of a queue, whether it is plain, reliable or partitioned. A queue that is not open stays so.
   */
  async stats(name: string, call?: Call): Promise<QueueStats> {
    this.checkOpen();
    const partitioned = this.#partitioned.get(name);
    if (partitioned !== undefined) return await partitioned.numbers.stats(call);
    // Also if it is open as an ordinary queue here: another process may have given it partitions since. With a brace in
    // a key prefix, no queue has partitions.
    if (this.#servers.every(({ connections }) => mayHavePartitions(connections))) {
      const parts = this.#newPartitions(name, undefined);
      const stats = await briefly(parts, async () =>
        (await arePartitions(parts.parts, call)) ? await parts.numbers.stats(call) : undefined,
      );
      if (stats !== undefined) return stats;
    }
    const open = this.#ordinary.get(name);
    if (open !== undefined) return await open.numbers.stats(call);
    const ordinary = new OpenQueue(name, "addresses", this.#servers[0]);
    return await briefly(ordinary, () => ordinary.numbers.stats(call));
  }

  /** The counters of each open queue, by name. */
  get counters(): Map<string, QueueCounters> {
    const named = [...this.#ordinary, ...this.#partitioned];
    return new Map(named.map(([name, { counters }]) => [name, counters.snapshot()]));
  }

  /** Closes the subscriptions of all queues, but not their loops. */
  async closeSubscriptions(options: CloseOptions): Promise<void> {
    const consumers = this.all.flatMap((open) => [...open.consumers]);
    const subscriptions = consumers.filter((consumer) => consumer instanceof Subscription);
    await Promise.all(subscriptions.map((subscription) => subscription.close(options)));
  }

  /**
   * Opens a partitioned queue, or returns the one that is open.
   *
   * @throws {TypeError} if this client has it open as an ordinary queue, or the name or a `keyPrefix` is not legal for
   * a partitioned queue.
   */
  openPartitions(name: string, partitions: number | undefined): OpenPartitions {
    this.checkOpen();
    if (this.#ordinary.has(name)) {
      throw new TypeError(`queue "${name}" is open as an ordinary queue in this client`);
    }
    let open = this.#partitioned.get(name);
    if (open === undefined) {
      open = this.#newPartitions(name, partitions);
      this.#partitioned.set(name, open);
      if (this.#isClosing) void open.stopTaking();
    }
    open.parts.expect(partitions);
    return open;
  }

  /** Whether any handler, or any body of a loop, runs. */
  get #isHandling(): boolean {
    return this.all.some(({ consumers }) => [...consumers].some(({ running }) => running > 0));
  }

  #newPartitions(name: string, partitions: number | undefined): OpenPartitions {
    // Throws for an illegal name, before anything is opened.
    queueKeys(name);
    const servers = this.#servers;
    for (const { connections } of servers) checkPrefix(connections);
    const host = {
      serverCount: servers.length,
      open: (part: string, server: number, link: PartLink) =>
        new OpenQueue(part, "addresses", servers[server] as Server, link),
    };
    return new OpenPartitions(name, partitions, host);
  }
}

/** Closes what was opened for one look. */
async function briefly<Result>(
  open: OpenQueue | OpenPartitions,
  look: () => Promise<Result>,
): Promise<Result> {
  try {
    return await look();
  } finally {
    await open.stopTaking();
    await open.close();
  }
}

/** Whether queues may be partitioned: with a brace in the key prefix, all keys would be in one Cluster slot. */
function mayHavePartitions({ commands }: Server["connections"]): boolean {
  return commands.options.keyPrefix?.includes("{") !== true;
}

/** @throws {TypeError} if the key prefix has a brace; see {@link mayHavePartitions}. */
function checkPrefix(connections: Server["connections"]): void {
  if (mayHavePartitions(connections)) return;
  const { keyPrefix } = connections.commands.options;
  throw new TypeError(
    `keyPrefix must not contain a brace for a partitioned queue, got ${JSON.stringify(keyPrefix)}`,
  );
}
