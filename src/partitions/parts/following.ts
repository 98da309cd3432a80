import { readFact } from "../../lua/partitions/fact.ts";
import type { Call } from "../../queue/call.ts";
import type { RedisClient } from "../../redis/client.ts";
import { queueTime } from "../../time/runtime.ts";
import { ORDINARY, parseFact, type Fact } from "../ring/fact.ts";
import { checkFact, type Creation } from "./creation.ts";
import { FactWatch } from "./fact-watch.ts";
import type { Member, Roles } from "./member.ts";
import { Members, type Changers } from "./members.ts";
import type { Part } from "./part.ts";
import type { WrongUses } from "./wrong-uses.ts";

/**
 * What this client knows of the partitions of one queue: whether it has any, by which fact, and which processes have it
 * open.
 *
 * A queue begins as an **ordinary** one. Redis is not asked about partitions then, and nothing has to be awaited. It becomes a
 * **partitioned** one, for good, when a handle of this client says so ({@link expect}), or when word comes that another process has
 * given it partitions ({@link learn}). Before that, an exclusive consumer may already follow the fact, and wait for the partitions
 * to be created.
 */
export class Following {
  readonly #name: string;
  readonly #creation: Creation;
  readonly #wrongUses: WrongUses;
  readonly #onChange: () => void;
  readonly #onSeen = new Set<() => boolean>();
  /** Undefined until this client follows the fact. */
  #followed: { readonly watch: FactWatch; readonly members: Members } | undefined;
  #isOrdinary = true;
  #onPartitioned = () => {};
  /** What to announce once the queue has partitions. */
  #roles: Roles = {};
  readonly #takes = new Set<string>();
  #isStopped = false;
  /** When an offer asks for the fact again (`queueTime.now()`). */
  #asksAgainAt = -Infinity;

  /** `onChange` is called whenever the fact or the members have changed, or an exclusive consumer has released a partition. */
  constructor(name: string, creation: Creation, wrongUses: WrongUses, onChange: () => void) {
    this.#name = name;
    this.#creation = creation;
    this.#wrongUses = wrongUses;
    this.#onChange = onChange;
  }

  /** Whether the queue is an ordinary one, as far as this client knows. Then there is no fact to ask for. */
  get isOrdinary(): boolean {
    return this.#isOrdinary;
  }

  /** Sets the function that is called when the queue has become a partitioned one, before its partitions are open. */
  onPartitioned(listener: () => void): void {
    this.#onPartitioned = listener;
  }

  /** See {@link FactWatch.fact}. */
  get fact(): Fact | undefined {
    return this.#followed?.watch.fact;
  }

  /** The same as Redis holds it. */
  get text(): string | undefined {
    return this.#followed?.watch.text;
  }

  /** See {@link FactWatch.known}. */
  known(call?: Call): Promise<Fact> {
    return this.#watch.known(call);
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

  /** See {@link FactWatch.refused}. */
  refused(held: string, sent: string): void {
    this.#watch.refused(held, sent);
  }

  /** See {@link FactWatch.notice}. */
  get notice(): string {
    return this.#watch.notice;
  }

  /** Asks for the current fact of a partitioned queue; undefined for an ordinary one. */
  async current(call?: Call): Promise<Fact | undefined> {
    return this.isOrdinary ? undefined : await this.ask(call);
  }

  /** Asks whether the queue has partitions, and creates none. Returns the fact; undefined for an ordinary queue. */
  async look(call?: Call): Promise<Fact | undefined> {
    if (this.fact !== undefined) return await this.fresh(call);
    if (this.#wrongUses.obstacle !== undefined) return undefined;
    const { queue } = this.#creation.at(0);
    const found = await queue.look("ask for the partitions of", readFact, {}, call);
    if (found !== undefined) {
      checkFact(this.#name, found, this.#creation.servers);
      this.learn(found);
    }
    return this.fact;
  }

  /**
   * Learns a fact, from whichever script has told it; see {@link FactWatch.learn}. Reports once if an ordinary handle of
   * this client cannot follow it.
   */
  learn(text: string): void {
    if (this.isOrdinary) {
      const fact = parseFact(text);
      if (fact === undefined || !this.#wrongUses.mayFollow(fact)) return;
    }
    this.#follow().watch.learn(text);
  }

  /**
   * A sweep of a part has told of the fact beside it. If that is an earlier one than this client knows, Redis went back
   * there, or has not been told: a script that is checked finds out.
   */
  heard({ partition, queue }: Part, held: string): void {
    this.learn(held);
    const { text } = this;
    if (partition === ORDINARY || text === undefined || held === text) return;
    queue.read("look into", readFact, {}, { knownFact: text }).catch(() => {});
  }

  /**
   * From now on the queue is a partitioned one: a handle of this client says so. If it has no partitions, creates
   * `partitions`. The first number counts. Without a number, a queue that was opened as an ordinary one stays one until
   * they are created.
   *
   * @throws {TypeError} if the queue cannot have partitions.
   */
  expect(partitions: number | undefined, isPartitioned = partitions !== undefined): void {
    const { obstacle } = this.#wrongUses;
    if (this.isOrdinary && obstacle !== undefined) throw new TypeError(obstacle);
    this.#creation.partitions ??= partitions;
    this.#follow();
    if (isPartitioned) this.#becomePartitioned();
  }

  /**
   * Asks now and then whether an ordinary queue was given partitions, if this process offers to it, and neither moves its
   * messages nor takes them: it learns in no other way. Never rejects: without the right to ask, it carries on.
   */
  noteOffer(): void {
    const isTold = this.#roles.moves === true && !this.#isStopped;
    if (isTold || !this.isOrdinary) return;
    const now = queueTime.now();
    if (now < this.#asksAgainAt) return;
    this.#asksAgainAt = now + INTERVAL;
    const { queue } = this.#creation.at(ORDINARY);
    const ask = (redis: RedisClient) => queue.askForPartitions(redis);
    queue.call("ask for the partitions of", ask).catch(() => {});
  }

  /** See {@link Members.all}. */
  get members(): readonly Member[] {
    return this.#followed?.members.all ?? [];
  }

  /** See {@link Members.self}. */
  get self(): string {
    return this.#followed?.members.self ?? "";
  }

  /** See {@link Members.exclusive}. */
  get exclusive(): readonly string[] {
    return this.#followed?.members.exclusive ?? [];
  }

  /** See {@link Members.changers}. */
  get changers(): Changers {
    return this.#followed?.members.changers ?? { alive: [], silent: [] };
  }

  /**
   * Calls `listener` whenever this process has seen the other members. It returns whether it waits for the next time.
   */
  onSeen(listener: () => boolean): void {
    this.#onSeen.add(listener);
  }

  /** See {@link Members.attend}. For an ordinary queue, notes what to announce once it has partitions. */
  attend(roles: Roles): void {
    this.#roles = { ...this.#roles, ...roles };
    this.#followed?.members.attend(roles);
  }

  /** Announces whether this client takes from `source`; see {@link takeOf}. */
  attendTaking(source: string, isTaking: boolean): void {
    if (isTaking) this.#takes.add(source);
    else this.#takes.delete(source);
    this.attend({ takes: [...this.#takes] });
  }

  /** See {@link Members.announceRelease}. */
  async announceRelease(): Promise<void> {
    await this.#followed?.members.announceRelease();
  }

  /** Stops attending. Facts are still learned from refused scripts: handlers that still run may offer. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#followed?.members.close();
  }

  #becomePartitioned(): void {
    if (!this.#isOrdinary) return;
    this.#isOrdinary = false;
    this.#onPartitioned();
  }

  get #watch(): FactWatch {
    if (this.#followed === undefined) throw new Error(`queue "${this.#name}" is an ordinary one`);
    return this.#followed.watch;
  }

  /** Follows the fact from now on. */
  #follow(): { readonly watch: FactWatch; readonly members: Members } {
    if (this.#followed !== undefined) return this.#followed;
    const first = this.#creation.at(0);
    const watch = new FactWatch(this.#name, first, this.#creation, () => {
      this.#becomePartitioned();
      this.#onChange();
    });
    const members = new Members(this.#name, first, watch, {
      onChange: this.#onChange,
      onSeen: () => [...this.#onSeen].map((listener) => listener()).includes(true),
      onUncreated: () => this.#wrongUses.noteUncreated(),
    });
    this.#followed = { watch, members };
    if (!this.#isStopped && Object.keys(this.#roles).length > 0) members.attend(this.#roles);
    return this.#followed;
  }
}

/** Milliseconds between two questions for the fact by a process that only offers. */
const INTERVAL = 30_000;
