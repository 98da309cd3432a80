import type { Elements } from "../../lua/family.ts";
import { Counters } from "../../observe/counters.ts";
import type { Destination } from "../../queue/arrivals.ts";
import type { Call } from "../../queue/call.ts";
import { bucketOfKey } from "../../queue/message/bucket.ts";
import { queueKeys } from "../../queue/keys.ts";
import { PlainTakes } from "../../ready/plain-takes.ts";
import type { Server, Servers } from "../../redis/server.ts";
import type { Codes } from "../../schedules/recipes.ts";
import {
  activeOf,
  arrivingAt,
  destinationOf,
  formatFact,
  ORDINARY,
  type Fact,
} from "../ring/fact.ts";
import { PartitionNames } from "../ring/ring.ts";
import { ActivityLog } from "./activity-log.ts";
import { Following } from "./following.ts";
import { Part } from "./part.ts";
import { WrongUses } from "./wrong-uses.ts";

/** Called for a part that the queue no longer has; resolves once this client has left it. */
export type Leaving = (part: Part) => Promise<void>;

/** How a queue is opened. */
export interface PartsOptions {
  /** The elements of the ordinary queue's insertion order. Partitions always have addresses. */
  readonly elements: Elements;
  /** Whether it is opened as a partitioned queue, as {@link Following.expect} says. */
  readonly isPartitioned: boolean;
  /** How many partitions to create if the queue has none. */
  readonly partitions?: number | undefined;
}

/**
 * The parts of one queue that this client has open: its partitions, or the ordinary queue alone.
 *
 * The client opens every part that may hold messages according to the fact, as {@link Following} knows it. When the queue no longer
 * has a part, the client leaves it: it stops taking there, and migrates the messages given back since.
 */
export class Parts {
  /** The queue's name. */
  readonly name: string;
  readonly counters: Counters;
  readonly plainTakes: PlainTakes;
  /** What this client has declared about schedules and Redis cannot hold. */
  readonly codes: Codes = new Map();
  /** What this client knows of the queue's partitions. */
  readonly following: Following;
  readonly activity: ActivityLog = new ActivityLog(this);
  readonly #servers: Servers;
  readonly #elements: Elements;
  readonly #names: PartitionNames;
  readonly #open = new Map<number, Part>();
  /** The ordinary queue, if it was opened only to look at it. */
  #ordinary: Part | undefined;
  readonly #listeners = new Set<() => void>();
  /** Parts that this client has left. They are closed with the client. */
  readonly #left = new Set<Part>();
  readonly #leavings = new Set<Promise<void>>();
  #isClosed = false;
  #leave: Leaving = () => Promise.resolve();
  #migrateSchedule: (fact: Fact, partition: number, schedule: string) => Promise<void> = () =>
    Promise.resolve();
  #active: readonly Part[];

  /** @throws {TypeError} if the name cannot name a queue, or the queue cannot have the expected partitions. */
  constructor(
    name: string,
    servers: Servers,
    { elements, isPartitioned, partitions }: PartsOptions,
  ) {
    this.name = name;
    this.counters = new Counters(name);
    this.plainTakes = new PlainTakes(name, servers[0].report);
    this.#servers = servers;
    this.#elements = elements;
    this.#names = new PartitionNames(name);
    const at = (partition: number) => (partition === ORDINARY ? this.ordinary : this.at(partition));
    const creation = { partitions: undefined, servers: servers.length, at };
    const wrongUses = new WrongUses(name, servers, elements, () => this.ordinary);
    this.following = new Following(name, creation, wrongUses, () => this.#onChange());
    // An illegal name is refused before anything is opened.
    queueKeys(name);
    this.#active = isPartitioned ? [] : [this.at(ORDINARY)];
    if (isPartitioned) this.following.expect(partitions, true);
  }

  /** Whether this client offers to the queue, takes from it or moves its messages: it does not only look. */
  get isUsed(): boolean {
    return this.opened.some(({ queue }) => queue.isUsed);
  }

  /** How many servers there are: partition p is on server p mod n. */
  get serverCount(): number {
    return this.#servers.length;
  }

  /** Whether keys of the user's may be on other nodes than the queue. */
  get isSpread(): boolean {
    return this.serverCount > 1 || this.first.queue.server.isCluster;
  }

  /** The part that every process has: partition 0, or the ordinary queue if there are no partitions. */
  get first(): Part {
    return this.at(this.following.isOrdinary ? ORDINARY : 0);
  }

  /** The ordinary queue of the same name, for inspection only; {@link at} opens it as a part. */
  get ordinary(): Part {
    return this.#open.get(ORDINARY) ?? (this.#ordinary ??= this.#newPart(ORDINARY));
  }

  /** The parts that may hold messages; empty while the fact of a partitioned queue is not known. */
  get active(): readonly Part[] {
    return this.#active;
  }

  /**
   * The partition with this number, or {@link ORDINARY}; opens it on first use. The queue need not have that partition,
   * or may have had it before: this client then neither takes nor transfers there.
   */
  at(partition: number): Part {
    let part = this.#open.get(partition);
    if (part === undefined) {
      part = this.#newPart(partition);
      this.#open.set(partition, part);
    }
    return part;
  }

  /** The parts that may hold messages, by a {@link Following.fresh} fact. */
  async all(call?: Call): Promise<readonly Part[]> {
    if (!this.following.isOrdinary) await this.following.fresh(call);
    return this.#active;
  }

  /** The part where the messages of a bucket belong, and the fact that says so, which scripts there check. */
  async of(bucket: number, call?: Call): Promise<Destination> {
    if (this.following.isOrdinary) return { queue: this.first.queue, knownFact: undefined };
    const fact = this.following.fact ?? (await this.following.known(call));
    const { queue } = this.at(destinationOf(fact, bucket));
    return { queue, knownFact: formatFact(fact) };
  }

  /** Calls `act` for {@link all} parts at once; returns the results in their order. */
  async onAll<Result>(act: (part: Part) => Promise<Result>, call?: Call): Promise<Result[]> {
    return await Promise.all((await this.all(call)).map(act));
  }

  /**
   * Calls `change` for all parts, and again if the fact has changed by then: new partitions are created with the state that
   * partition 0 had at that moment.
   */
  async changeAll(change: (part: Part) => Promise<void>, call?: Call): Promise<void> {
    let epoch: number | undefined;
    do {
      epoch = (await this.following.current(call))?.epoch;
      await Promise.all(this.#active.map(change));
    } while ((await this.following.current(call))?.epoch !== epoch);
  }

  /** Calls `count` for {@link all} parts at once; returns the sum. */
  async sum(count: (part: Part) => Promise<number>, call?: Call): Promise<number> {
    return (await this.onAll(count, call)).reduce((sum, one) => sum + one, 0);
  }

  /**
   * Calls `listener` whenever the fact or the members have changed, or an exclusive consumer has released a partition.
   * All partitions are open by then. Returns a function that removes the listener.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Sets the function that leaves a partition. */
  onLeaving(leave: Leaving): void {
    this.#leave = leave;
  }

  /** Sets the function that migrates a schedule out of a partition where it does not belong. */
  onMisplaced(migrate: (fact: Fact, partition: number, schedule: string) => Promise<void>): void {
    this.#migrateSchedule = migrate;
  }

  /** Resolves when the parts that the queue no longer has are left. */
  async left(): Promise<void> {
    await Promise.all(this.#leavings);
  }

  /** Refuses every call in every part from now on; resolves when the calls and offers under way are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.opened.map((part) => part.close()));
  }

  /** Every part that this client has opened, including those that it has left. */
  get opened(): readonly Part[] {
    const looked = this.#ordinary === undefined ? [] : [this.#ordinary];
    return [...this.#open.values(), ...this.#left, ...looked];
  }

  #onChange(): void {
    const { fact } = this.following;
    if (fact === undefined) return;
    const before = this.#active;
    const now = activeOf(fact).map((partition) => this.at(partition));
    // Keep the array if it is equal: listeners compare it by identity.
    const isSame = now.length === before.length && now.every((part, i) => part === before[i]);
    this.#active = isSame ? before : now;
    for (const listener of this.#listeners) listener();
    // Leave parts last, after the listeners have stopped taking from them.
    for (const part of before) if (!now.includes(part)) this.#leaveOne(part);
  }

  #newPart(partition: number): Part {
    const isOrdinary = partition === ORDINARY;
    const name = isOrdinary ? this.name : this.#names.at(partition);
    const server = isOrdinary ? 0 : partition % this.#servers.length;
    const elements = isOrdinary ? this.#elements : "addresses";
    const { following } = this;
    const link = {
      counters: this.counters,
      knownFact: () => following.text,
      partition,
      shares: () => (following.fact === undefined ? 1 : activeOf(following.fact).length),
      arriving: () => arrivingAt(following.fact, partition),
      learn: (fact: string) => following.heard(part, fact),
      refused: (held: string, sent: string) => following.refused(held, sent),
      noteStream: (exists: boolean) => this.plainTakes.noteStream(part.queue, exists),
    };
    const on = this.#servers[server] as Server;
    const bringHome = (schedule: string) => this.#bringHome(partition, schedule);
    const scheduling = { codes: this.codes, bringHome };
    const part: Part = new Part(partition, name, elements, on, link, scheduling, this.plainTakes);
    // A call that began before may still need another part. It is refused there as well.
    if (this.#isClosed) {
      part.queue.close();
      void part.close();
    }
    return part;
  }

  #bringHome(partition: number, schedule: string): Promise<void> | undefined {
    const { fact } = this.following;
    if (fact === undefined || destinationOf(fact, bucketOfKey(schedule)) === partition)
      return undefined;
    return this.#migrateSchedule(fact, partition, schedule);
  }

  /** Leaves a part, but does not close it: calls that are under way there go on. */
  #leaveOne(part: Part): void {
    this.#open.delete(part.partition);
    this.#left.add(part);
    const leaving = this.#leave(part).finally(() => this.#leavings.delete(leaving));
    this.#leavings.add(leaving);
  }
}
