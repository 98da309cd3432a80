import type { Elements } from "../../lua/family.ts";
import { WrongHandleError } from "../../errors.ts";
import { readFact } from "../../lua/partitions/fact.ts";
import { isInUse } from "../../lua/partitions/partition.ts";
import { Counters } from "../../observe/counters.ts";
import type { Destination } from "../../queue/arrivals.ts";
import type { Call } from "../../queue/call.ts";
import { bucketOfKey } from "../../queue/message/bucket.ts";
import { queueKeys } from "../../queue/keys.ts";
import type { RedisClient } from "../../redis/client.ts";
import type { Server, Servers } from "../../redis/server.ts";
import type { Codes } from "../../schedules/recipes.ts";
import {
  activeOf,
  destinationOf,
  formatFact,
  isWithOrdinary,
  ORDINARY,
  parseFact,
  type Fact,
} from "../ring/fact.ts";
import { checkFact, type Creation } from "./creation.ts";
import { FactWatch } from "./fact-watch.ts";
import type { Member, Roles } from "./member.ts";
import { Members } from "./members.ts";
import { Part } from "./part.ts";
import { PlainTakes } from "./plain-takes.ts";
import { PartitionNames } from "../ring/ring.ts";
import { movers } from "../ring/shares.ts";
import { queueTime } from "../../time/runtime.ts";

/** Called for a part that the queue no longer has; resolves once this client has left it. */
export type Leaving = (part: Part) => Promise<void>;

/** How a queue is opened. */
export interface PartsOptions {
  /** The elements of the ordinary queue's insertion order. Partitions always have addresses. */
  readonly elements: Elements;
  /** Whether it is opened as a partitioned queue, as {@link Parts.expect} says. */
  readonly isPartitioned: boolean;
  /** How many partitions to create if the queue has none. */
  readonly partitions?: number | undefined;
}

/**
 * The parts of one queue that this client has open: its partitions, or the ordinary queue alone.
 *
 * A queue begins as an **ordinary** one, whose only part is the ordinary queue. Redis is not asked about partitions
 * then, and nothing has to be awaited. It becomes a **partitioned** one when a handle of this client says so
 * ({@link expect}), or when a sweep of the ordinary queue tells that another process has given it partitions.
 *
 * The client opens every part that may hold messages according to the fact. Two processes are on duty to transfer the
 * due messages of each; the others only sweep it. When the queue no longer has a part, the client leaves it: it stops
 * taking there, and migrates what was given back meanwhile.
 */
export class Parts {
  /** The queue's name. */
  readonly name: string;
  readonly counters: Counters;
  readonly plainTakes: PlainTakes;
  /** What this client has declared about schedules and Redis cannot hold. */
  readonly codes: Codes = new Map();
  readonly #servers: Servers;
  readonly #elements: Elements;
  readonly #names: PartitionNames;
  readonly #open = new Map<number, Part>();
  readonly #creation: Creation;
  /** Undefined while the queue is an ordinary one. */
  #partitioned: { readonly watch: FactWatch; readonly members: Members } | undefined;
  /** The ordinary queue, if it was opened only to look at it. */
  #ordinary: Part | undefined;
  /** What to announce once the queue has partitions. */
  #roles: Roles = {};
  readonly #listeners = new Set<() => void>();
  readonly #takes = new Set<string>();
  /** Parts that this client has left. They are closed with the client. */
  readonly #left = new Set<Part>();
  readonly #leavings = new Set<Promise<void>>();
  #isTransferring = false;
  #isStopped = false;
  #isClosed = false;
  /** Whether a handle of this client has said that the queue is a partitioned one. */
  #isExpected = false;
  /** Whether this client offers to the queue, takes from it or moves its messages: it does not only look. */
  isUsed = false;
  /** Whether it was reported that this client cannot follow the queue to its partitions. */
  #isUnableTold = false;
  /** Whether it was reported that a queue is consumed exclusively that has no partitions. */
  #isUncreatedTold = false;
  #leave: Leaving = () => Promise.resolve();
  #migrateSchedule: (fact: Fact, partition: number, schedule: string) => Promise<void> = () =>
    Promise.resolve();
  #finishChange: () => Promise<boolean> = () => Promise.resolve(true);
  /** Since when nobody has worked on the change under way (`queueTime.now()`). */
  #abandonedAt: number | undefined;
  /** Processes that died while they worked on a change, and that this client has not looked after yet. */
  readonly #died = new Set<string>();
  /** Those that it has looked after. */
  readonly #lookedAfter = new Set<string>();
  /** Until when this client leaves it to others to finish the change (`queueTime.now()`). */
  #restsUntil = -Infinity;
  /** When an offer asks for the fact again (`queueTime.now()`). */
  #asksAgainAt = -Infinity;
  /** How many changes this client works on. */
  #changes = 0;
  #active: readonly Part[];

  /** @throws {TypeError} if the name cannot name a queue, or the queue cannot have the expected partitions. */
  constructor(name: string, servers: Servers, options: PartsOptions) {
    this.name = name;
    this.counters = new Counters(name);
    this.plainTakes = new PlainTakes(name, servers[0].report);
    this.#servers = servers;
    this.#elements = options.elements;
    this.#names = new PartitionNames(name);
    const at = (partition: number) => (partition === ORDINARY ? this.ordinary : this.at(partition));
    this.#creation = { partitions: undefined, servers: servers.length, at };
    // An illegal name is refused before anything is opened.
    queueKeys(name);
    this.#active = options.isPartitioned ? [] : [this.at(ORDINARY)];
    if (options.isPartitioned) this.expect(options.partitions);
  }

  /**
   * Whether the queue is an ordinary one, as far as this client knows. Then {@link first} is its only part, and there is
   * no fact to ask for.
   */
  get isOrdinary(): boolean {
    return this.#partitioned === undefined || (this.fact === undefined && !this.#isExpected);
  }

  /** See {@link FactWatch.fact}. */
  get fact(): Fact | undefined {
    return this.#partitioned?.watch.fact;
  }

  /** See {@link FactWatch.known}. */
  known(call?: Call): Promise<Fact> {
    return this.#watch.known(call);
  }

  /**
   * Learns a fact, from whichever script has told it; see {@link FactWatch.learn}. Reports once if an ordinary handle of
   * this client cannot follow it.
   */
  learn(text: string): void {
    if (this.isOrdinary) {
      const fact = parseFact(text);
      if (fact === undefined) return;
      const obstacle = this.#obstacle ?? obstacleOf(fact, this.#servers.length);
      if (obstacle !== undefined) {
        this.#noteUnable(obstacle);
        return;
      }
    }
    this.#follow().watch.learn(text);
  }

  /** See {@link Members.all}. */
  get members(): readonly Member[] {
    return this.#partitioned?.members.all ?? [];
  }

  /** See {@link Members.self}. */
  get self(): string {
    return this.#partitioned?.members.self ?? "";
  }

  /** See {@link Members.exclusive}. */
  get exclusive(): readonly string[] {
    return this.#partitioned?.members.exclusive ?? [];
  }

  /** See {@link FactWatch.notice}. */
  get notice(): string {
    return this.#watch.notice;
  }

  /** How many servers there are: partition p is on server p mod n. */
  get serverCount(): number {
    return this.#servers.length;
  }

  /** The part that every process has: partition 0, or the ordinary queue if there are no partitions. */
  get first(): Part {
    return this.at(this.isOrdinary ? ORDINARY : 0);
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

  /**
   * From now on the queue is a partitioned one: a handle of this client says so. If it has no partitions, creates
   * `partitions`. The first number counts. Without a number, an ordinary queue stays one until somebody creates them.
   *
   * @throws {TypeError} if the queue cannot have partitions.
   */
  expect(partitions: number | undefined): void {
    if (this.isOrdinary && this.#obstacle !== undefined) throw new TypeError(this.#obstacle);
    this.#creation.partitions ??= partitions;
    this.#isExpected ||= partitions !== undefined || this.#active.length === 0;
    this.#follow();
  }

  /** Asks whether the queue has partitions, and creates none. Returns the fact; undefined for an ordinary queue. */
  async look(call?: Call): Promise<Fact | undefined> {
    if (this.fact !== undefined) return await this.fresh(call);
    if (this.#obstacle !== undefined) return undefined;
    const { queue } = this.at(0);
    const found = await queue.look("ask for the partitions of", readFact, {}, call);
    if (found !== undefined) {
      checkFact(this.name, found, this.#servers.length);
      this.learn(found);
    }
    return this.fact;
  }

  /**
   * Asks now and then whether an ordinary queue was given partitions, if this process offers to it, and neither moves its
   * messages nor takes them: nothing else tells it then. Never rejects; whoever may not ask goes on as before.
   */
  noteOffer(): void {
    this.isUsed = true;
    if (this.#isTransferring || !this.isOrdinary) return;
    const now = queueTime.now();
    if (now < this.#asksAgainAt) return;
    this.#asksAgainAt = now + INTERVAL;
    const { queue } = this.first;
    const ask = (redis: RedisClient) => queue.askForPartitions(redis);
    queue.call("ask for the partitions of", ask).catch(() => {});
  }

  /** See {@link FactWatch.fresh}. */
  fresh(call?: Call): Promise<Fact> {
    return this.#watch.fresh(call);
  }

  /** See {@link FactWatch.ask}. */
  ask(call?: Call): Promise<Fact> {
    return this.#watch.ask(call);
  }

  /** See {@link FactWatch.newerThan}. */
  newerThan(fact: Fact, error: unknown, call?: Call): Promise<Fact> {
    return this.#watch.newerThan(fact, error, call);
  }

  /** Asks for the current fact of a partitioned queue; undefined for an ordinary one. */
  async current(call?: Call): Promise<Fact | undefined> {
    return this.isOrdinary ? undefined : await this.ask(call);
  }

  /** The parts that may hold messages, by a {@link fresh} fact. */
  async all(call?: Call): Promise<readonly Part[]> {
    if (this.isOrdinary) return this.#active;
    await this.fresh(call);
    return this.#active;
  }

  /** The part where the messages of a bucket belong, and the fact that says so, which scripts there check. */
  async of(bucket: number, call?: Call): Promise<Destination> {
    if (this.isOrdinary) return { queue: this.first.queue, knownFact: undefined };
    const fact = this.fact ?? (await this.known(call));
    const { queue } = this.at(destinationOf(fact, bucket));
    return { queue, knownFact: formatFact(fact) };
  }

  /** Calls `act` for {@link all} parts at once; returns the results in their order. */
  async onAll<Result>(act: (part: Part) => Promise<Result>, call?: Call): Promise<Result[]> {
    return await Promise.all((await this.all(call)).map(act));
  }

  /** Calls `count` for {@link all} parts at once; returns the sum. */
  sum(count: (part: Part) => Promise<number>, call?: Call): Promise<number> {
    if (this.isOrdinary) return count(this.first);
    return this.onAll(count, call).then((counts) => counts.reduce((sum, one) => sum + one, 0));
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

  /** Sets the function that migrates a schedule out of a partition where it does not belong. */
  onMisplaced(migrate: (fact: Fact, partition: number, schedule: string) => Promise<void>): void {
    this.#migrateSchedule = migrate;
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
    this.isUsed = true;
    this.attend({ moves: true });
    if (this.#isTransferring) return;
    this.#isTransferring = true;
    this.#assignDuties();
  }

  /** See {@link Members.attend}. For an ordinary queue, notes what to announce once it has partitions. */
  attend(roles: Roles): void {
    this.#roles = { ...this.#roles, ...roles };
    this.#partitioned?.members.attend(roles);
  }

  /** Announces whether this client takes from `source`; see {@link takeOf}. */
  attendTaking(source: string, isTaking: boolean): void {
    if (isTaking) this.#takes.add(source);
    else this.#takes.delete(source);
    this.attend({ takes: [...this.#takes] });
  }

  /** See {@link Members.announceRelease}. */
  async announceRelease(): Promise<void> {
    await this.#partitioned?.members.announceRelease();
  }

  /** Stops attending. Facts are still learned from refused scripts: handlers that still run may offer. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#isTransferring = false;
    await this.#partitioned?.members.close();
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

  get #watch(): FactWatch {
    if (this.#partitioned === undefined) throw new Error(`queue "${this.name}" is an ordinary one`);
    return this.#partitioned.watch;
  }

  /** Follows the fact from now on. */
  #follow(): { readonly watch: FactWatch; readonly members: Members } {
    if (this.#partitioned !== undefined) return this.#partitioned;
    const onChange = () => this.#onChange();
    const first = this.at(0);
    const watch = new FactWatch(this.name, first, this.#creation, onChange);
    const onSeen = () => this.#lookAfterChange();
    const onUncreated = () => this.#noteUncreated();
    const members = new Members(this.name, first, watch, { onChange, onSeen, onUncreated });
    this.#partitioned = { watch, members };
    if (!this.#isStopped && Object.keys(this.#roles).length > 0) members.attend(this.#roles);
    return this.#partitioned;
  }

  #onChange(): void {
    const { fact } = this;
    if (fact === undefined) return;
    const before = this.#active;
    const now = activeOf(fact).map((partition) => this.at(partition));
    // Keep the array if it is equal: listeners compare it by identity.
    const isSame = now.length === before.length && now.every((part, i) => part === before[i]);
    this.#active = isSame ? before : now;
    this.#assignDuties();
    for (const listener of this.#listeners) listener();
    // Leave parts last, after the listeners have stopped taking from them.
    for (const part of before) if (!now.includes(part)) this.#leaveOne(part);
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
    if (this.#partitioned === undefined) return;
    const { alive, silent } = this.#partitioned.members.changers;
    this.#noteDied(silent);
    const isOpen = fact !== undefined && fact.state !== "stable" && !isWithOrdinary(fact);
    if ((!isOpen && this.#died.size === 0) || this.#changes > 0 || alive.length > 0) {
      this.#abandonedAt = undefined;
      return;
    }
    const now = queueTime.now();
    if (now < this.#restsUntil) return;
    this.#abandonedAt ??= now;
    const names = members.map(({ name }) => name).filter((name) => !this.#died.has(name));
    const rank = movers(names, 0, names.length).indexOf(self);
    if (now - this.#abandonedAt < rank * HEAD_START) return;
    const died = [...this.#died];
    void this.changing(async () => {
      if (await this.#finishChange()) {
        for (const name of died) {
          this.#lookedAfter.add(name);
          this.#died.delete(name);
        }
        return;
      }
      // Another process may be permitted what this one is not. Each tries once before this one tries again.
      this.#restsUntil = queueTime.now() + Math.max(1, names.length) * HEAD_START;
    });
  }

  /** Notes the processes that have fallen silent in the middle of a change. Soon they are members no more. */
  #noteDied(silent: readonly string[]): void {
    for (const name of silent) if (!this.#lookedAfter.has(name)) this.#died.add(name);
    for (const { name } of this.members) if (!silent.includes(name)) this.#died.delete(name);
  }

  /**
   * A sweep of a part has told of the fact beside it. If that is an earlier one than this client knows, Redis went back
   * there, or has not been told: a script that is checked finds out.
   */
  #heard({ partition, queue }: Part, held: string): void {
    this.learn(held);
    const { text } = this.#partitioned?.watch ?? {};
    if (partition === ORDINARY || text === undefined || held === text) return;
    queue.read("look into", readFact, {}, { knownFact: text }).catch(() => {});
  }

  #newPart(partition: number): Part {
    const isOrdinary = partition === ORDINARY;
    const name = isOrdinary ? this.name : this.#names.at(partition);
    const server = isOrdinary ? 0 : partition % this.#servers.length;
    const elements = isOrdinary ? this.#elements : "addresses";
    const link = {
      counters: this.counters,
      knownFact: () => this.fact && formatFact(this.fact),
      partition,
      learn: (fact: string) => this.#heard(part, fact),
      refused: (held: string, sent: string) => this.#watch.refused(held, sent),
      noteStream: (exists: boolean) => this.plainTakes.noteStream(part.queue, exists),
    };
    const on = this.#servers[server] as Server;
    const bringHome = (schedule: string) => this.#bringHome(partition, schedule);
    const scheduling = { codes: this.codes, bringHome };
    const part: Part = new Part(partition, name, elements, on, link, scheduling);
    // A call that began before may still need another part. It is refused there as well.
    if (this.#isClosed) {
      part.queue.close();
      void part.close();
    }
    return part;
  }

  /**
   * Why the queue cannot have partitions as this client has opened it; undefined if it can. With a brace in the key
   * prefix, all keys would be in one Cluster slot.
   */
  get #obstacle(): string | undefined {
    if (this.#elements === "members") {
      return `interop of queue "${this.name}" must be "none" with partitions`;
    }
    const server = this.#servers.find(hasBrace);
    if (server === undefined) return undefined;
    return `keyPrefix must not contain a brace for a partitioned queue, got ${JSON.stringify(prefixOf(server))}`;
  }

  /** Reports once that this client's ordinary queue and the partitions are two queues of one name. */
  #noteUnable(obstacle: string): void {
    if (this.#isUnableTold) return;
    this.#isUnableTold = true;
    const what = `has partitions, but this client uses the ordinary queue of that name beside them, whose messages and keys are apart: ${obstacle}; open it as the other processes do, or under another name`;
    this.ordinary.queue.report(new WrongHandleError(this.name, what));
  }

  /** Reports once that exclusive consumers wait for partitions while messages go into the ordinary queue. */
  async #noteUncreated(): Promise<void> {
    if (this.#isUncreatedTold) return;
    const { queue } = this.ordinary;
    const { background } = queue.server.connections;
    if (!(await queue.run(background, isInUse, { asked: "used" }))) return;
    this.#isUncreatedTold = true;
    const what =
      "is in use and has no partitions, but this client consumes it exclusively, and gets nothing before it has some: set the option partitions, call setPartitions, or leave out exclusive";
    queue.report(new WrongHandleError(this.name, what));
  }

  #assignDuties(): void {
    if (!this.#isTransferring) return;
    const { fact, members } = this;
    if (fact === undefined) {
      // An ordinary queue is transferred by every process. With partitions, the fact comes first.
      if (this.isOrdinary) this.first.startTransfer();
      return;
    }
    const { self } = this;
    const names = members.filter(({ roles }) => roles.moves).map(({ name }) => name);
    for (const part of this.#active) {
      part.startTransfer();
      // Before the first sign of life no mover is known, so this process transfers alone.
      const onDuty = names.length === 0 ? [self] : movers(names, part.partition + 1);
      if (!onDuty.includes(self)) part.setDuty("off");
      else part.setDuty(onDuty.length === 1 ? "alone" : "shared");
      part.setSuspended(fact.state === "holding");
    }
  }

  #bringHome(partition: number, schedule: string): Promise<void> | undefined {
    const { fact } = this;
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

function obstacleOf({ servers }: Fact, own: number): string | undefined {
  if (servers === own) return undefined;
  return `it is on ${servers} server(s), and the option redis names ${own}`;
}

function prefixOf({ connections }: Server): string {
  return connections.commands.options.keyPrefix ?? "";
}

function hasBrace(server: Server): boolean {
  return prefixOf(server).includes("{");
}

/** Milliseconds between two questions for the fact by a process that only offers. */
const INTERVAL = 30_000;

/** Milliseconds until the next process tries to finish a change that was abandoned. */
const HEAD_START = 3000;
