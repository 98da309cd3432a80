import { LeftRunningError, RedisError } from "../errors.ts";
import { Change, type ChangeOptions } from "../partitions/change/change.ts";
import { describePartitions, type PartitionInfo } from "../partitions/partition-info.ts";
import type { Part, PartsHost } from "../partitions/parts/part.ts";
import { Exclusive } from "../partitions/exclusive/exclusive.ts";
import { ExclusiveGroup } from "../partitions/exclusive/exclusive-group.ts";
import { PartitionedGroup } from "../partitions/taking/partitioned-group.ts";
import { PartitionedMessages } from "../partitions/partitioned-messages.ts";
import { PartitionedNumbers } from "../partitions/partitioned-numbers.ts";
import { PartitionedPlaces } from "../partitions/partitioned-places.ts";
import { PartitionedPauses } from "../partitions/partitioned-pauses.ts";
import { PartitionedQuarantine } from "../partitions/partitioned-quarantine.ts";
import { PartitionedReady } from "../partitions/taking/partitioned-ready.ts";
import { Parts } from "../partitions/parts/parts.ts";
import { Routing } from "../partitions/routing/routing.ts";
import type { Counters } from "../observe/counters.ts";
import type { Call } from "../queue/call.ts";
import type { Consumer } from "../queue/consuming/consumer.ts";
import type { Queue } from "../queue/queue.ts";
import type { GroupSettings } from "../reliable/group/group.ts";
import type { JoinWork, Work } from "../redis/troubles.ts";

/** Everything that a client has running for one group of a partitioned reliable queue. */
interface OpenGroup {
  readonly group: PartitionedGroup;
  readonly messages: PartitionedMessages;
}

/** Everything that a client has running for one partitioned queue. All handles of the queue share it. */
export class OpenPartitions {
  readonly queue: Pick<Queue, "name" | "report" | "quarantine">;
  readonly parts: Parts;
  readonly pauses: PartitionedPauses;
  readonly quarantine: PartitionedQuarantine;
  readonly numbers: PartitionedNumbers;
  readonly counters: Counters;
  readonly places: PartitionedPlaces;
  readonly delayed: PartitionedMessages;
  readonly ready: PartitionedReady;
  readonly consumers = new Set<Consumer>();
  /** The takes of its subscriptions. */
  readonly joinTakes: JoinWork;
  readonly #routing: Routing;
  readonly #groups = new Map<string, OpenGroup>();
  readonly #exclusive: Exclusive;
  /** Health of the changes that this client finishes for others. */
  readonly #finishing: Work;
  #closing = new AbortController();

  /** `partitions` is how many partitions to create, if the queue has none. */
  constructor(name: string, partitions: number | undefined, host: PartsHost) {
    this.parts = new Parts(name, partitions, host);
    const { report, server } = this.parts.first.queue;
    this.queue = {
      name,
      report,
      quarantine: (bytes, into) => this.#reachable.queue.quarantine(bytes, into),
    };
    this.#routing = new Routing(this.parts);
    this.pauses = new PartitionedPauses(this.parts);
    this.quarantine = new PartitionedQuarantine(this.parts);
    this.numbers = new PartitionedNumbers(this.parts);
    this.places = new PartitionedPlaces(this.parts);
    this.counters = this.parts.counters;
    this.delayed = new PartitionedMessages(this.parts, this.#routing, ({ delayed }) => delayed);
    this.ready = new PartitionedReady(this.parts);
    this.#exclusive = new Exclusive(this.parts);
    this.joinTakes = server.troubles.sharedWork();
    this.#finishing = server.troubles.work();
    this.parts.onAbandoned(async () => {
      const { signal } = this.#closing;
      try {
        await this.#change({ signal }).finish();
        this.#finishing.succeeded();
        return true;
      } catch (error) {
        const doing = `cannot finish the change of the partitions of queue "${name}"`;
        const failure = error instanceof RedisError ? error : new RedisError(doing, error);
        if (!signal.aborted) this.#finishing.failed(failure);
        return false;
      }
    });
    this.parts.onLeaving(async (part, partition) => {
      const { signal } = this.#closing;
      await this.ready.left();
      await part.stopTaking();
      await part.leaveGroups();
      // If this fails, its messages are safe where they are. The next change of the number finds them.
      if (!signal.aborted)
        await this.#change({ signal })
          .drainLate(partition)
          .catch(() => {});
    });
  }

  /** From now on this client moves the queue's due messages. */
  startTransfer(): void {
    this.parts.startTransfer();
  }

  /**
   * Opens a consumer group, or returns the one that is open.
   *
   * @throws {TypeError} if the group is open with other settings.
   */
  openGroup(settings: GroupSettings): OpenGroup {
    const open = this.#groups.get(settings.group);
    if (open !== undefined) {
      open.group.groupOf(this.parts.first).checkSame(settings);
      return open;
    }
    const group = new PartitionedGroup(this.parts, settings);
    const messages = new PartitionedMessages(
      this.parts,
      this.#routing,
      (part) => part.openGroup(settings).messages,
    );
    const opened = { group, messages };
    this.#groups.set(settings.group, opened);
    if (this.#closing.signal.aborted) void group.stop();
    return opened;
  }

  /**
   * Returns the group for a handle that consumes it exclusively. With `isStrict`, no message overtakes a failed one.
   */
  exclusiveGroup(settings: GroupSettings, isStrict: boolean): ExclusiveGroup {
    return new ExclusiveGroup(this.parts, settings, isStrict, this.#exclusive);
  }

  /** Changes the number of partitions; see {@link Change}. */
  async setPartitions(count: number, options: Partial<ChangeOptions>): Promise<void> {
    await this.parts.changing(() => this.#change(options).run(count));
  }

  /** Returns the partitions, each with its numbers of messages. */
  describe(call?: Call): Promise<PartitionInfo[]> {
    return describePartitions(this.parts, call);
  }

  /** Stops taking and moving; resolves once only users' code holds messages. */
  async stopTaking(): Promise<void> {
    this.#closing.abort();
    this.#finishing.ended();
    this.#exclusive.close();
    for (const consumer of this.consumers) consumer.stop();
    const groups = Array.from(this.#groups.values(), ({ group }) => group.stop());
    await Promise.all([this.parts.stop(), this.ready.close(), ...groups]);
    await Promise.all(this.parts.opened.map((part) => part.stopTaking()));
  }

  /** Resolves when the running handlers and the bodies of loops have finished. */
  async handled(): Promise<void> {
    await Promise.all(Array.from(this.consumers, ({ ended }) => ended));
  }

  /** Reports how many handlers and bodies of loops are left running, if there are any. */
  reportRunning(): void {
    let count = 0;
    for (const { running } of this.consumers) count += running;
    if (count > 0) this.queue.report(new LeftRunningError(this.queue.name, count));
  }

  /** Refuses every call from now on; resolves when the offers under way are settled. */
  async close(): Promise<void> {
    // First, since a call that was refused for its old fact is sent again, and its partition has to be open for that.
    await this.#routing.close();
    await Promise.all(this.parts.opened.map((part) => part.close()));
  }

  /** A partition whose server can be reached, as far as is known. */
  get #reachable(): Part {
    const parts = this.parts.active.map((partition) => this.parts.at(partition));
    return parts.find(isReachable) ?? this.parts.first;
  }

  #change(options: Partial<ChangeOptions>): Change {
    return new Change(this.parts, this.#routing, {
      signal: undefined,
      onProgress: () => {},
      keepsOrdinary: false,
      ...options,
    });
  }
}

function isReachable({ queue: { server } }: Part): boolean {
  return server.connections.readiness.wait() === undefined;
}
