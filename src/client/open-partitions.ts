import { LeftRunningError } from "../errors.ts";
import { Change, type ChangeOptions } from "../partitions/change/change.ts";
import { describePartitions, type PartitionInfo } from "../partitions/partition-info.ts";
import type { Part, PartsHost } from "../partitions/parts/part.ts";
import { Exclusive } from "../partitions/exclusive/exclusive.ts";
import { ExclusiveGroup } from "../partitions/exclusive/exclusive-group.ts";
import { ExclusiveReady } from "../partitions/exclusive/exclusive-ready.ts";
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
import type { Consumer } from "../queue/consuming/consumer.ts";
import type { Queue } from "../queue/queue.ts";
import type { GroupSettings } from "../reliable/group/group.ts";
import type { Work } from "../redis/troubles.ts";
import type { OpenServer } from "./open-server.ts";

/** What handles of a group see of a reliable queue in partitions. */
interface OpenGroup {
  readonly group: PartitionedGroup;
  readonly messages: PartitionedMessages;
}

/** What a client has running for one queue in partitions, however many handles there are. */
export class OpenPartitions {
  /** What handles and errors call it. */
  readonly queue: Pick<Queue, "name" | "report" | "quarantine">;
  readonly parts: Parts;
  readonly pauses: PartitionedPauses;
  readonly quarantine: PartitionedQuarantine;
  readonly numbers: PartitionedNumbers;
  readonly counters: Counters;
  readonly places: PartitionedPlaces;
  readonly delayed: PartitionedMessages;
  readonly ready: PartitionedReady;
  /** What a handle sees that consumes exclusively. */
  readonly exclusiveReady: ExclusiveReady;
  readonly consumers = new Set<Consumer>();
  readonly takes: Work;
  readonly #routing: Routing;
  readonly #groups = new Map<string, OpenGroup>();
  readonly #exclusive: Exclusive;
  #closing = new AbortController();

  /** `partitions` is how many there are to be, if there are none yet. */
  constructor(name: string, partitions: number | undefined, host: PartsHost, shared: OpenServer) {
    this.parts = new Parts(name, partitions, host, shared);
    this.queue = {
      name,
      report: shared.report,
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
    this.exclusiveReady = new ExclusiveReady(this.ready, this.parts, this.#exclusive);
    this.takes = shared.troubles.work();
    this.parts.onLeaving(async (part, partition) => {
      const { signal } = this.#closing;
      await this.ready.left();
      await part.stopTaking();
      await part.leaveGroups();
      // Its messages are safe where they are. Whoever changes the number next finds them.
      if (!signal.aborted)
        await this.#change({ signal })
          .drainLate(partition)
          .catch(() => {});
    });
  }

  /** From now on this client moves due messages of the queue. */
  startTransfer(): void {
    this.parts.startTransfer();
  }

  /** @throws {TypeError} if the group is open with other settings. */
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
    return opened;
  }

  /** How a handle takes that consumes a group exclusively; `isStrict`: what fails is not overtaken. */
  exclusiveGroup(settings: GroupSettings, isStrict: boolean): ExclusiveGroup {
    return new ExclusiveGroup(this.parts, settings, isStrict, this.#exclusive);
  }

  /** Changes the number of partitions; see {@link Change}. */
  async setPartitions(count: number, options: Partial<ChangeOptions>): Promise<void> {
    await this.#change(options).run(count);
  }

  /** The partitions, and what is in each. */
  describe(signal?: AbortSignal): Promise<PartitionInfo[]> {
    return describePartitions(this.parts, signal);
  }

  /** Stops taking and moving; resolves when nothing is in hand any more, but with users' code. */
  async stopTaking(): Promise<void> {
    this.#closing.abort();
    for (const consumer of this.consumers) consumer.stop();
    const groups = Array.from(this.#groups.values(), ({ group }) => group.stop());
    await Promise.all([this.parts.stop(), this.ready.close(), ...groups]);
    await Promise.all(this.parts.opened.map((part) => part.stopTaking()));
  }

  /** Resolves when the handlers and the bodies of loops that run have finished. */
  async handled(): Promise<void> {
    await Promise.all(Array.from(this.consumers, ({ ended }) => ended));
  }

  /** Reports the handlers and the bodies of loops that run, if there are any: nobody waits for them. */
  reportRunning(): void {
    let count = 0;
    for (const { running } of this.consumers) count += running;
    if (count > 0) this.queue.report(new LeftRunningError(this.queue.name, count));
  }

  /** Refuses every call from now on; resolves when the offers that were made are settled. */
  async close(): Promise<void> {
    // What was refused as old, and is tried again, needs its partition still.
    await this.#routing.close();
    await Promise.all(this.parts.opened.map((part) => part.close()));
  }

  /** One of the partitions, whose server is there, as far as is known. */
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

function isReachable({ server }: Part): boolean {
  return server.connections.readiness.wait() === undefined;
}
