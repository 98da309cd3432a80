import { setMaxListeners } from "node:events";
import { Counters } from "../../observe/counters.ts";
import type { Call } from "../../queue/call.ts";
import {
  formatFact,
  FROM_ORDINARY,
  isWithOrdinary,
  ORDINARY,
  partitionsOf,
  type Fact,
} from "../ring/fact.ts";
import type { Creation } from "./creation.ts";
import { FactWatch } from "./fact-watch.ts";
import type { Member, Roles } from "./member.ts";
import { Members } from "./members.ts";
import type { Part, PartsHost } from "./part.ts";
import { PartitionNames } from "../ring/ring.ts";
import { movers } from "../ring/shares.ts";

/** Called for a partition that the queue no longer has; resolves once this client has left it. */
export type Leaving = (part: Part, partition: number) => Promise<void>;

/**
 * The partitions of one queue that this client has open.
 *
 * The client opens every partition that may hold messages according to the fact. Two processes are on duty to transfer
 * the due messages of each; the others only sweep it. When the queue no longer has a partition, the client leaves it:
 * it stops taking there, and migrates what was given back meanwhile.
 */
export class Parts {
  /** The queue's name. */
  readonly name: string;
  readonly counters: Counters;
  readonly #host: PartsHost;
  readonly #names: PartitionNames;
  readonly #open = new Map<number, Part>();
  readonly #creation: Creation;
  readonly #watch: FactWatch;
  readonly #members: Members;
  #ordinary: Part | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #takes = new Set<string>();
  /** Partitions that this client has left. They are closed with the client. */
  readonly #left = new Set<Part>();
  readonly #leavings = new Set<Promise<void>>();
  #isTransferring = false;
  #leave: Leaving = () => Promise.resolve();
  #finishChange: () => Promise<boolean> = () => Promise.resolve(true);
  /** Since when nobody has worked on the change under way (`performance.now()`). */
  #abandonedAt: number | undefined;
  /** Processes that died while they worked on a change, and that this client has not looked after yet. */
  readonly #died = new Set<string>();
  /** Those that it has looked after. */
  readonly #lookedAfter = new Set<string>();
  /** Until when this client leaves it to others to finish the change (`performance.now()`). */
  #restsUntil = -Infinity;
  /** How many changes this client works on. */
  #changes = 0;
  #active: readonly number[] = [];

  constructor(name: string, partitions: number | undefined, host: PartsHost) {
    this.name = name;
    this.counters = new Counters(name);
    this.#host = host;
    this.#names = new PartitionNames(name);
    const at = (partition: number) => (partition === ORDINARY ? this.ordinary : this.at(partition));
    this.#creation = { partitions, servers: host.serverCount, at };
    const onChange = () => this.#onChange();
    this.#watch = new FactWatch(name, this.first, this.#creation, onChange);
    const onSeen = () => this.#lookAfterChange();
    this.#members = new Members(name, this.first, this.#watch, { onChange, onSeen });
  }

  /** See {@link FactWatch.fact}. */
  get fact(): Fact | undefined {
    return this.#watch.fact;
  }

  /** See {@link FactWatch.known}. */
  known(call?: Call): Promise<Fact> {
    return this.#watch.known(call);
  }

  /** See {@link FactWatch.learn}. */
  learn(fact: string): void {
    this.#watch.learn(fact);
  }

  /** See {@link Members.all}. */
  get members(): readonly Member[] {
    return this.#members.all;
  }

  /** See {@link Members.self}. */
  get self(): string {
    return this.#members.self;
  }

  /** See {@link Members.exclusive}. */
  get exclusive(): readonly string[] {
    return this.#members.exclusive;
  }

  /** See {@link FactWatch.notice}. */
  get notice(): string {
    return this.#watch.notice;
  }

  /** How many servers there are: partition p is on server p mod n. */
  get serverCount(): number {
    return this.#host.serverCount;
  }

  /** Partition 0, which every partitioned queue has. */
  get first(): Part {
    return this.at(0);
  }

  /** The ordinary queue of the same name, for inspection only; {@link at} opens it as a part. */
  get ordinary(): Part {
    return this.#open.get(ORDINARY) ?? (this.#ordinary ??= this.#newPart(ORDINARY));
  }

  /** The numbers of the partitions that may hold messages; empty before the fact is known. */
  get active(): readonly number[] {
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

  /** See {@link FactWatch.fresh}. */
  fresh(call?: Call): Promise<Fact> {
    return this.#watch.fresh(call);
  }

  /** See {@link FactWatch.ask}. */
  ask(call?: Call): Promise<Fact> {
    return this.#watch.ask(call);
  }

  /** The partitions that may hold messages, by a {@link fresh} fact. */
  async all(call?: Call): Promise<Part[]> {
    // The caller passes the signal to every partition, and each adds a listener.
    if (call?.signal !== undefined) setMaxListeners(0, call.signal);
    await this.fresh(call);
    return this.#active.map((partition) => this.at(partition));
  }

  /** Calls `act` for {@link all} partitions at once; returns the results in their order. */
  async onAll<Result>(act: (part: Part) => Promise<Result>, call?: Call): Promise<Result[]> {
    return await Promise.all((await this.all(call)).map(act));
  }

  /** Calls `count` for {@link all} partitions at once; returns the sum. */
  async sum(count: (part: Part) => Promise<number>, call?: Call): Promise<number> {
    const counts = await this.onAll(count, call);
    return counts.reduce((sum, one) => sum + one, 0);
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

  /** Sets the function that finishes a change whose process has died, and returns whether it has. */
  onAbandoned(finishChange: () => Promise<boolean>): void {
    this.#finishChange = finishChange;
  }

  /** Works on a change of the number of partitions, and tells the other processes so. */
  async changing<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#changes++ === 0) this.attend({ isChanging: true });
    try {
      return await work();
    } finally {
      if (--this.#changes === 0) this.attend({ isChanging: false });
    }
  }

  /** Starts to transfer due messages. */
  startTransfer(): void {
    this.attend({ moves: true });
    if (this.#isTransferring) return;
    this.#isTransferring = true;
    this.#assignDuties();
  }

  /** See {@link Members.attend}. */
  attend(roles: Roles): void {
    this.#members.attend(roles);
  }

  /** Announces whether this client takes from `source`; see {@link takeOf}. */
  attendTaking(source: string, isTaking: boolean): void {
    if (isTaking) this.#takes.add(source);
    else this.#takes.delete(source);
    this.attend({ takes: [...this.#takes] });
  }

  /** See {@link Members.announceRelease}. */
  announceRelease(): Promise<void> {
    return this.#members.announceRelease();
  }

  /** Sets how many partitions to create if the queue has none. The first number counts. */
  expect(partitions: number | undefined): void {
    this.#creation.partitions ??= partitions;
  }

  /** Stops attending. Facts are still learned from refused scripts: handlers that still run may offer. */
  async stop(): Promise<void> {
    this.#isTransferring = false;
    await this.#members.close();
    await Promise.all(this.#leavings);
  }

  /** Every part that this client has opened, including those that it has left. */
  get opened(): readonly Part[] {
    return [...this.#open.values(), ...this.#left];
  }

  #onChange(): void {
    const { fact } = this.#watch;
    if (fact === undefined) return;
    const before = this.#active;
    const now = activeOf(fact);
    // Keep the array if it is equal: PartitionedGroup compares it by identity.
    const active = now.join() === before.join() ? before : now;
    this.#active = active;
    for (const partition of active) this.at(partition);
    this.#assignDuties();
    for (const listener of this.#listeners) listener();
    // Leave partitions last, after the listeners have stopped taking from them.
    for (const partition of before) if (!active.includes(partition)) this.#leaveOne(partition);
  }

  /**
   * Finishes the change under way if nobody else works on it. The processes try one after another, in an order that all
   * of them compute alike: one is enough, though several would do no harm.
   *
   * A process that dies at the very end of its change may leave a batch open though the fact is stable already. So that
   * is looked after as well, once for each such process.
   *
   * While the ordinary queue is a part, nobody knows whether its processes are gone: the next `setPartitions` finishes.
   */
  #lookAfterChange(): void {
    const { fact, self, members } = this;
    const { alive, silent } = this.#members.changers;
    this.#noteDied(silent);
    const isOpen = fact !== undefined && fact.state !== "stable" && !isWithOrdinary(fact);
    if ((!isOpen && this.#died.size === 0) || this.#changes > 0 || alive.length > 0) {
      this.#abandonedAt = undefined;
      return;
    }
    const now = performance.now();
    if (now < this.#restsUntil) return;
    this.#abandonedAt ??= now;
    const names = members.map(({ name }) => name).filter((name) => !this.#died.has(name));
    const turn = movers(names, 0, names.length).indexOf(self);
    if (now - this.#abandonedAt < turn * TURN) return;
    const died = [...this.#died];
    void this.changing(async () => {
      if (await this.#finishChange()) {
        for (const name of died) {
          this.#lookedAfter.add(name);
          this.#died.delete(name);
        }
        return;
      }
      // Another process may be permitted what this one is not. Each has a turn before this one tries again.
      this.#restsUntil = performance.now() + Math.max(1, names.length) * TURN;
    });
  }

  /** Notes the processes that have fallen silent in the middle of a change. Soon they are members no more. */
  #noteDied(silent: readonly string[]): void {
    for (const name of silent) if (!this.#lookedAfter.has(name)) this.#died.add(name);
    for (const { name } of this.members) if (!silent.includes(name)) this.#died.delete(name);
  }

  #newPart(partition: number): Part {
    const isOrdinary = partition === ORDINARY;
    const name = isOrdinary ? this.name : this.#names.at(partition);
    const server = isOrdinary ? 0 : partition % this.#host.serverCount;
    return this.#host.open(name, server, {
      counters: this.counters,
      knownFact: () => this.#knownFact,
      learn: (fact) => this.learn(fact),
    });
  }

  get #knownFact(): string | undefined {
    const { fact } = this.#watch;
    return fact && formatFact(fact);
  }

  #assignDuties(): void {
    const { fact, members, self } = this;
    if (fact === undefined || !this.#isTransferring) return;
    const names = members.filter(({ roles }) => roles.moves).map(({ name }) => name);
    for (const partition of this.#active) {
      const part = this.at(partition);
      part.startTransfer();
      // Before the first sign of life no mover is known, so this process transfers alone.
      const onDuty = names.length === 0 ? [self] : movers(names, partition + 1);
      if (!onDuty.includes(self)) part.setDuty("off");
      else part.setDuty(onDuty.length === 1 ? "alone" : "shared");
      part.setHeld(fact.state === "holding");
    }
  }

  /** Leaves a partition, but does not close it: calls that are under way there go on. */
  #leaveOne(partition: number): void {
    const part = this.at(partition);
    this.#open.delete(partition);
    this.#left.add(part);
    const leaving = this.#leave(part, partition).finally(() => this.#leavings.delete(leaving));
    this.#leavings.add(leaving);
  }
}

/** Milliseconds until the next process tries to finish a change that was abandoned. */
const TURN = 3000;

/** The partitions that may hold messages according to a fact, {@link ORDINARY} first if it is one of them. */
export function activeOf(fact: Fact): number[] {
  const all = Array.from({ length: partitionsOf(fact) }, (_, partition) => partition);
  return fact.from === FROM_ORDINARY ? [ORDINARY, ...all] : all;
}
