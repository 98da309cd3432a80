import { setMaxListeners } from "node:events";
import { isHandled } from "../../lua/partitions/is-handled.ts";
import { Counters } from "../../observe/counters.ts";
import type { Troubles } from "../../redis/troubles.ts";
import { formatFact, FROM_ORDINARY, ORDINARY, partitionsOf, type Fact } from "../ring/fact.ts";
import type { Creation } from "./creation.ts";
import { FactWatch } from "./fact-watch.ts";
import type { Member, Roles } from "./member.ts";
import type { Part, PartsHost } from "./part.ts";
import { PartitionNames } from "../ring/ring.ts";
import { movers } from "../ring/shares.ts";

/** Leaves a partition that is none any more. */
export type Leaving = (part: Part, partition: number) => Promise<void>;

/**
 * The partitions of one queue, as far as this client has them open.
 *
 * It opens each that may hold messages, as the fact says, and shares out who moves the due ones: two processes move
 * those of a partition, and the others only look after it. A partition that is none any more is left: what takes from
 * it stops, and what was given back to it meanwhile is brought over.
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
  #ordinary: Part | undefined;
  readonly #listeners = new Set<() => void>();
  readonly #takes = new Set<string>();
  readonly #left = new Set<Part>();
  readonly #leavings = new Set<Promise<void>>();
  #isTransferring = false;
  #leave: Leaving = () => Promise.resolve();
  #active: readonly number[] = [];

  constructor(
    name: string,
    partitions: number | undefined,
    host: PartsHost,
    shared: { readonly troubles: Troubles },
  ) {
    this.name = name;
    this.counters = new Counters(name);
    this.#host = host;
    this.#names = new PartitionNames(name);
    const at = (partition: number) => (partition === ORDINARY ? this.ordinary : this.at(partition));
    this.#creation = { partitions, servers: host.serverCount, at };
    this.#watch = new FactWatch(name, this.at(0), this.#creation, shared);
    this.#watch.onChange(() => this.#onChange());
  }

  /** What is known of the partitions; undefined before {@link known} has resolved for the first time. */
  get fact(): Fact | undefined {
    return this.#watch.fact;
  }

  /** See {@link FactWatch.known}. */
  known(signal?: AbortSignal): Promise<Fact> {
    return this.#watch.known(signal);
  }

  learn(fact: string): void {
    this.#watch.learn(fact);
  }

  get members(): readonly Member[] {
    return this.#watch.members;
  }

  get self(): string {
    return this.#watch.self;
  }

  /** See {@link FactWatch.exclusive}. */
  get exclusive(): readonly string[] {
    return this.#watch.exclusive;
  }

  get notice(): string {
    return this.#watch.notice;
  }

  /** How many servers there are: partition p is on server p mod n. */
  get serverCount(): number {
    return this.#host.serverCount;
  }

  /** Partition 0 is always there. */
  get first(): Part {
    return this.at(0);
  }

  /** The ordinary queue of the same name, to look at; {@link at} opens it as a part. */
  get ordinary(): Part {
    return this.#open.get(ORDINARY) ?? (this.#ordinary ??= this.#newPart(ORDINARY));
  }

  /** The numbers of those that may hold messages; none before the fact is known. */
  get active(): readonly number[] {
    return this.#active;
  }

  /**
   * One of them, or {@link ORDINARY}. It is opened when it is first asked for. One that is none any more may be asked for
   * as well; then nothing is taken and moved there.
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
  fresh(signal?: AbortSignal): Promise<Fact> {
    return this.#watch.fresh(signal);
  }

  /** See {@link FactWatch.ask}. */
  ask(signal?: AbortSignal): Promise<Fact> {
    return this.#watch.ask(signal);
  }

  /** Those that may hold messages, as was known a moment ago. */
  async all(signal?: AbortSignal): Promise<Part[]> {
    // Each of them listens.
    if (signal !== undefined) setMaxListeners(0, signal);
    await this.fresh(signal);
    return this.#active.map((partition) => this.at(partition));
  }

  /**
   * Calls `listener` whenever the fact or the members have changed, or somebody has released a partition; behind that
   * each partition is open. Returns what ends that.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Says what is to be done with a partition that is none any more. */
  onLeaving(leave: Leaving): void {
    this.#leave = leave;
  }

  /** From now on this client moves due messages. */
  startTransfer(): void {
    this.attend({ moves: true });
    if (this.#isTransferring) return;
    this.#isTransferring = true;
    this.#shareOut();
  }

  /** From now on this client counts as one that does this. */
  attend(roles: Roles): void {
    this.#watch.attend(roles);
  }

  /** Whether this client takes from this; see {@link takeOf}. */
  attendTaking(what: string, isTaking: boolean): void {
    if (isTaking) this.#takes.add(what);
    else this.#takes.delete(what);
    this.attend({ takes: [...this.#takes] });
  }

  /** See {@link FactWatch.tellReleased}. */
  tellReleased(): Promise<void> {
    return this.#watch.tellReleased();
  }

  /** Whether nothing is ready in a partition, and no handler of an exclusive consumer is at work on it. */
  isHandled(partition: number, { epoch }: Fact, signal?: AbortSignal): Promise<boolean> {
    const { queue } = this.at(partition);
    return queue.read("ask for the holder of", isHandled, { epoch }, { signal });
  }

  /** If it has no partitions yet, it gets so many. */
  expect(partitions: number | undefined): void {
    this.#creation.partitions ??= partitions;
  }

  /** Leaves the other processes. The fact is learned still: handlers that run may offer. */
  async stop(): Promise<void> {
    this.#isTransferring = false;
    await this.#watch.close();
    await Promise.all(this.#leavings);
  }

  /** Every part that this client has open, and those that it has left. */
  get opened(): readonly Part[] {
    return [...this.#open.values(), ...this.#left];
  }

  #onChange(): void {
    const { fact } = this.#watch;
    if (fact === undefined) return;
    const before = this.#active;
    const now = activeOf(fact);
    // The same array, so that whoever has it knows that nothing has changed.
    const active = now.join() === before.join() ? before : now;
    this.#active = active;
    for (const partition of active) this.at(partition);
    this.#shareOut();
    for (const listener of this.#listeners) listener();
    // The listeners take from these no more.
    for (const partition of before) if (!active.includes(partition)) this.#leaveOne(partition);
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

  #shareOut(): void {
    const { fact, members, self } = this.#watch;
    if (fact === undefined || !this.#isTransferring) return;
    const names = members.filter(({ roles }) => roles.moves).map(({ name }) => name);
    for (const partition of this.#active) {
      const part = this.at(partition);
      part.startTransfer();
      // As long as nobody is known, everybody moves.
      const onDuty = names.length === 0 ? [self] : movers(names, partition + 1);
      if (!onDuty.includes(self)) part.setDuty("off");
      else part.setDuty(onDuty.length === 1 ? "alone" : "shared");
      part.setHeld(fact.state === "holding");
    }
  }

  /** Calls that are under way on it end as they would have; it is closed with the client. */
  #leaveOne(partition: number): void {
    const part = this.at(partition);
    this.#open.delete(partition);
    this.#left.add(part);
    const leaving = this.#leave(part, partition).finally(() => this.#leavings.delete(leaving));
    this.#leavings.add(leaving);
  }
}

/** The partitions that may hold messages, as a fact says. */
export function activeOf(fact: Fact): number[] {
  const all = Array.from({ length: partitionsOf(fact) }, (_, partition) => partition);
  return fact.from === FROM_ORDINARY ? [ORDINARY, ...all] : all;
}
