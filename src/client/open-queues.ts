import { ClosedError } from "../errors.ts";
import type { Membership } from "../partitions/part.ts";
import type { PartitionInfo } from "../partitions/partition-info.ts";
import { queueKeys } from "../queue/keys.ts";
import type { QueueSettings } from "../queue/options.ts";
import { OpenPartitions } from "./open-partitions.ts";
import { OpenQueue } from "./open-queue.ts";
import type { Shared } from "./shared.ts";

/** What of a queue's settings concerns all its handles. */
type OpenSettings = Pick<QueueSettings<unknown>, "interop" | "transfer" | "partitions">;

/** The queues that a client has open, by their names. */
export class OpenQueues {
  readonly #servers: readonly [Shared, ...Shared[]];
  readonly #ordinary = new Map<string, OpenQueue>();
  readonly #partitioned = new Map<string, OpenPartitions>();
  #isClosed = false;

  constructor(servers: readonly [Shared, ...Shared[]]) {
    this.#servers = servers;
  }

  /** All of them. */
  get all(): readonly (OpenQueue | OpenPartitions)[] {
    return [...this.#ordinary.values(), ...this.#partitioned.values()];
  }

  /** Refuses to open others from now on. */
  close(): void {
    this.#isClosed = true;
  }

  /** @throws {ClosedError} after {@link close}. */
  checkOpen(): void {
    if (this.#isClosed) throw new ClosedError("the client");
  }

  /**
   * Opens a queue, which is in partitions if the settings or another handle of this client say so, or it is consumed
   * exclusively.
   *
   * @throws {TypeError} if the name cannot name a queue, or the settings contradict what it was opened with.
   */
  open(name: string, settings: OpenSettings, isExclusive = false): OpenQueue | OpenPartitions {
    this.checkOpen();
    const { partitions } = settings;
    const isPartitioned = isExclusive || partitions !== undefined || this.#partitioned.has(name);
    const open = isPartitioned
      ? this.openPartitions(name, partitions)
      : this.openOrdinary(name, settings);
    if (settings.transfer) open.startTransfer();
    return open;
  }

  /** @throws {TypeError} if it is in partitions, or its elements are others. */
  openOrdinary(name: string, { interop }: Pick<OpenSettings, "interop">): OpenQueue {
    const elements = interop === "redisson" ? "members" : "addresses";
    if (this.#partitioned.has(name)) {
      throw new TypeError(`queue "${name}" is open as one in partitions in this client`);
    }
    let open = this.#ordinary.get(name);
    if (open === undefined) {
      open = new OpenQueue(name, elements, this.#servers[0]);
      this.#ordinary.set(name, open);
    } else if (open.queue.layout.elements !== elements) {
      throw new TypeError(
        `interop of queue "${name}" must be the same for all its handles, got ${interop}`,
      );
    }
    return open;
  }

  /**
   * Opens another queue to be polled together with one that is open.
   *
   * @throws {TypeError} if either is in partitions.
   */
  openBeside(open: OpenQueue | OpenPartitions, name: string, settings: OpenSettings): OpenQueue {
    if (open instanceof OpenPartitions) {
      const { queue } = open;
      throw new TypeError(
        `queue "${queue.name}" is in partitions: it cannot be polled with others`,
      );
    }
    const other = this.openOrdinary(name, settings);
    if (settings.transfer) other.startTransfer();
    return other;
  }

  /** What is in each partition of a queue. One that is not open in partitions stays so. */
  async describePartitions(name: string, signal?: AbortSignal): Promise<PartitionInfo[]> {
    this.checkOpen();
    const open = this.#partitioned.get(name);
    if (open !== undefined) return await open.describe(signal);
    const briefly = this.#newPartitions(name, undefined);
    try {
      return await briefly.describe(signal);
    } finally {
      await briefly.stopTaking();
      await briefly.close();
    }
  }

  /** @throws {TypeError} if it is open as an ordinary queue. */
  openPartitions(name: string, partitions: number | undefined): OpenPartitions {
    this.checkOpen();
    if (this.#ordinary.has(name)) {
      throw new TypeError(`queue "${name}" is open as an ordinary one in this client`);
    }
    let open = this.#partitioned.get(name);
    if (open === undefined) {
      open = this.#newPartitions(name, partitions);
      this.#partitioned.set(name, open);
    }
    open.parts.expect(partitions);
    return open;
  }

  #newPartitions(name: string, partitions: number | undefined): OpenPartitions {
    // An illegal name is refused before anything is opened.
    queueKeys(name);
    const servers = this.#servers;
    const host = {
      serverCount: servers.length,
      open: (part: string, server: number, membership: Membership) =>
        new OpenQueue(part, "addresses", servers[server] as Shared, membership),
    };
    return new OpenPartitions(name, partitions, host, servers[0]);
  }
}
