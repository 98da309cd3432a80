import { LeftRunningError, RedisError } from "../errors.ts";
import { Change, type SetPartitionsOptions } from "./change/change.ts";
import { describePartitions, type PartitionInfo } from "./partition-info.ts";
import type { Part } from "./parts/part.ts";
import { Exclusive } from "./exclusive/exclusive.ts";
import { AbandonedChanges } from "./parts/abandoned-changes.ts";
import { Duties } from "./parts/duties.ts";
import { QueueFlow } from "./parts/queue-flow.ts";
import { Numbers } from "./parts/numbers.ts";
import { Pauses } from "./parts/pauses.ts";
import { Parts, type PartsOptions } from "./parts/parts.ts";
import { GroupReach, PlainReach } from "./reach.ts";
import { ORDINARY } from "./ring/fact.ts";
import type { Servers } from "../redis/server.ts";
import { Pause } from "../time/pause.ts";
import { sleepForNetwork } from "../time/sleep.ts";
import { isRefusedByFact } from "./parts/refusal.ts";
import { Routing } from "./routing/routing.ts";
import type { Counters } from "../observe/counters.ts";
import type { Call } from "../queue/call.ts";
import type { Consumer } from "../queue/consuming/consumer.ts";
import type { Queue } from "../queue/queue.ts";
import type { GroupSettings } from "../reliable/group/group.ts";
import type { JoinWork, Work } from "../redis/troubles.ts";

/** Everything that a client has running for one queue. All handles of the queue share it. */
export class OpenQueue {
  readonly name: string;
  /** Reports errors, and keeps unreadable bytes. */
  readonly queue: Pick<Queue, "name" | "report" | "quarantine">;
  readonly parts: Parts;
  readonly pauses: Pauses;
  readonly flow: QueueFlow;
  readonly numbers: Numbers;
  readonly counters: Counters;
  /** What its plain handles reach; {@link openGroup} has what those of a group do. */
  readonly plain: PlainReach;
  readonly consumers = new Set<Consumer>();
  /** The takes of its subscriptions. */
  readonly joinTakes: JoinWork;
  readonly #routing: Routing;
  readonly #duties: Duties;
  readonly #changes: AbandonedChanges;
  readonly #groups = new Map<string, GroupReach>();
  readonly exclusive: Exclusive;
  /** Health of the changes that this client finishes for others. */
  readonly #finishing: Work;
  /** Health of what it migrates out of parts that it leaves. */
  readonly #drains: Work;
  readonly #closing = new AbortController();
  #stopped: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /** @throws {TypeError} if the name cannot name a queue, or the queue cannot have the partitions asked for. */
  constructor(name: string, servers: Servers, options: PartsOptions) {
    const [{ report, troubles }] = servers;
    this.name = name;
    this.parts = new Parts(name, servers, options);
    this.#duties = new Duties(this.parts);
    this.#changes = new AbandonedChanges(this.parts.following, () => this.#finishChange());
    this.queue = {
      name,
      report,
      quarantine: (bytes, into) => this.#reachable.queue.quarantine(bytes, into),
    };
    this.#routing = new Routing(this.parts);
    this.pauses = new Pauses(this.parts);
    this.flow = new QueueFlow(this.parts);
    this.numbers = new Numbers(this.parts);
    this.counters = this.parts.counters;
    this.plain = new PlainReach(this.#within);
    this.parts.following.onPartitioned(() => this.#review());
    this.parts.onChange(() => {
      for (const reach of this.#reaches) reach.handOver();
    });
    this.exclusive = new Exclusive(this.parts);
    this.joinTakes = troubles.sharedWork();
    this.#finishing = troubles.work();
    this.#drains = troubles.work();
    this.parts.onMisplaced((fact, partition, schedule) =>
      this.#routing.migration.migrateSchedules(fact, partition, [schedule]),
    );
    this.parts.onLeaving((part) => this.#leave(part));
  }

  /** From now on this client moves the queue's due messages. */
  startTransfer(): void {
    this.#duties.start();
    this.#review();
  }

  /** Opens a consumer group, or returns the one that is open. */
  openGroup(settings: GroupSettings): GroupReach {
    const open = this.#groups.get(settings.group);
    if (open !== undefined) return open;
    const opened = new GroupReach(this.#within, settings);
    this.#groups.set(settings.group, opened);
    if (this.#closing.signal.aborted) void opened.stop();
    return opened;
  }

  get #within() {
    return { parts: this.parts, routing: this.#routing, duties: this.#duties };
  }

  get #reaches(): readonly (PlainReach | GroupReach)[] {
    return [this.plain, ...this.#groups.values()];
  }

  /** The queue has become a partitioned one, or this client moves its messages from now on, or no more. */
  #review(): void {
    for (const reach of this.#reaches) {
      reach.review();
      if (this.#closing.signal.aborted) void reach.stop();
    }
  }

  /** Finishes a change whose process has died; returns whether it has. */
  async #finishChange(): Promise<boolean> {
    const { signal } = this.#closing;
    try {
      await this.#change({ signal }).finish();
      this.#finishing.succeeded();
      return true;
    } catch (error) {
      const doing = `cannot finish the change of the partitions of queue "${this.name}"`;
      const failure = error instanceof RedisError ? error : new RedisError(doing, error);
      if (!signal.aborted) this.#finishing.failed(failure);
      return false;
    }
  }

  /** Leaves a part that the queue no longer has. */
  async #leave(part: Part): Promise<void> {
    const { signal } = this.#closing;
    // Until what was left there has migrated, a call that looks for a message migrates that message itself.
    const isOrdinary = part.partition === ORDINARY && this.parts.isUsed;
    if (isOrdinary) this.#routing.isLeavingOrdinary = true;
    await this.plain.left();
    part.ready.dismiss(
      new TypeError(`queue "${this.name}" is partitioned: it cannot be polled with others`),
    );
    await part.stopTaking();
    // An offer to an ordinary queue checks no fact: it may have been under way.
    await part.done();
    await this.#drain(part);
    if (isOrdinary) this.#routing.isLeavingOrdinary = false;
    // A process that has just heard that the queue has partitions may still handle messages of the ordinary one.
    await part.handlersEnded(signal);
    // The closing client waits for its handlers before it leaves the groups.
    if (signal.aborted) return;
    await part.leaveGroups();
    await this.#drain(part);
  }

  /**
   * Migrates what is left in a part that the queue no longer has, until that has worked or the client closes. No other
   * process moves the messages that this one left there. A process that only looks at the queue leaves none.
   */
  async #drain({ partition }: Part): Promise<void> {
    if (!this.parts.isUsed) return;
    const { signal } = this.#closing;
    const pause = new Pause(100, 5000);
    while (!signal.aborted) {
      try {
        if (await this.#change({ signal }).drainLate(partition)) break;
      } catch (error) {
        const doing = `cannot migrate what was left in a former part of queue "${this.name}"`;
        const failure = error instanceof RedisError ? error : new RedisError(doing, error);
        // The number has changed again, and the part may belong to the queue once more.
        if (!signal.aborted && !isRefusedByFact(error)) this.#drains.failed(failure);
      }
      await sleepForNetwork(pause.take(), signal);
    }
    this.#drains.ended();
  }

  /** Changes the number of partitions; see {@link Change}. */
  async setPartitions(count: number, options: SetPartitionsOptions): Promise<void> {
    await this.#changes.during(() => this.#change(options).run(count));
  }

  /** Returns the partitions, each with its numbers of messages. */
  describe(call?: Call): Promise<PartitionInfo[]> {
    return describePartitions(this.parts, call);
  }

  /** Stops taking and moving; resolves once only users' code holds messages. It may be called twice. */
  stopTaking(): Promise<void> {
    return (this.#stopped ??= this.#stopTaking());
  }

  async #stopTaking(): Promise<void> {
    this.#closing.abort();
    this.#finishing.ended();
    this.exclusive.close();
    for (const consumer of this.consumers) consumer.stop();
    const stopped = this.#reaches.map((reach) => reach.stop());
    await Promise.all([this.#stopFollowing(), ...stopped]);
    await Promise.all(this.parts.opened.map((part) => part.stopTaking()));
  }

  async #stopFollowing(): Promise<void> {
    this.#duties.stop();
    // Handlers that still run may offer, and no sweep tells of partitions any more.
    this.#review();
    await this.parts.following.stop();
    await this.parts.left();
  }

  /** Resolves when the running handlers and the bodies of loops have finished. */
  async handlersEnded(): Promise<void> {
    await Promise.all(Array.from(this.consumers, ({ ended }) => ended));
  }

  /** Reports how many handlers and bodies of loops are left running, if there are any. */
  reportRunning(): void {
    let count = 0;
    for (const { running } of this.consumers) count += running;
    if (count > 0) this.queue.report(new LeftRunningError(this.queue.name, count));
  }

  /** Refuses every call from now on; resolves when the offers under way are done. It may be called twice. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    // First, since a call that was refused for its old fact is sent again, and its partition has to be open for that.
    await this.#routing.close();
    await this.parts.close();
  }

  /** A part whose server can be reached, as far as is known. */
  get #reachable(): Part {
    return this.parts.active.find(isReachable) ?? this.parts.first;
  }

  #change(options: SetPartitionsOptions): Change {
    return new Change(this.parts, this.#routing, options);
  }
}

function isReachable({ queue: { server } }: Part): boolean {
  return server.connections.readiness.wait() === undefined;
}
