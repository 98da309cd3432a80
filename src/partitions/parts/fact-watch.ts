import { randomUUID } from "node:crypto";
import { RedisError } from "../../errors.ts";
import { attend } from "../../lua/partitions/attend.ts";
import { advanceFact } from "../../lua/partitions/fact.ts";
import type { Listener } from "../../redis/subscriber.ts";
import type { Troubles, Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import { loadFact, UncreatedError, type Creation } from "./creation.ts";
import { formatFact, isLater, parseFact, type Fact } from "../ring/fact.ts";
import { formatMember, parseMember, type Member, type Roles } from "./member.ts";
import type { Part } from "./part.ts";

/**
 * What this client knows about the partitions of one queue, and about the processes that have the queue open.
 *
 * The client asks partition 0 for the fact once, or another server if that of partition 0 cannot be reached. After that
 * it learns newer facts from notices on a channel, from the reply to each sign of life, and from scripts that Redis
 * refuses because their fact is old. Such refusals make it safe to learn of a change late.
 *
 * Once {@link attend} was called, the client sends a sign of life every three seconds, or more often if it consumes
 * exclusively. Processes that join or leave publish that on the channel, too. So all processes soon divide the
 * partitions in the same way; until then they may disagree, which is harmless since the division is only advice.
 */
export class FactWatch implements Listener {
  readonly #queue: string;
  readonly #first: Part;
  readonly #creation: Creation;
  readonly #work: Work;
  readonly #listeners = new Set<() => void>();
  readonly #id = randomUUID();
  readonly #pause = new Pause(50, 1000);

  #fact: Fact | undefined;
  #members: readonly Member[] = [];
  #exclusive: readonly string[] = [];
  #roles: Roles = {};
  /** This process as a member, as the others know it; empty before the first sign of life. */
  #announced = "";
  #loading: Promise<Fact> | undefined;
  #attending: Promise<void> | undefined;
  #isAttendDue = false;
  /** When the last sign of life that Redis replied to was sent (`performance.now()`). */
  #attendedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;
  #isClosed = false;

  constructor(
    queue: string,
    first: Part,
    creation: Creation,
    { troubles }: { readonly troubles: Troubles },
  ) {
    this.#queue = queue;
    this.#first = first;
    this.#creation = creation;
    this.#work = troubles.work();
  }

  /** The latest known fact; undefined before {@link known} has resolved for the first time. */
  get fact(): Fact | undefined {
    return this.#fact;
  }

  /** The processes that have the queue open, including this one if it attends. */
  get members(): readonly Member[] {
    return this.#members;
  }

  /** The names of the members that consume exclusively and were seen within {@link LATE} milliseconds. */
  get exclusive(): readonly string[] {
    return this.#exclusive;
  }

  /** This process's name among the members. */
  get self(): string {
    return this.#id;
  }

  /** The channel on which changes are published. */
  get notice(): string {
    return `${this.#first.queue.keys.partitions}:notice`;
  }

  /** Calls `listener` whenever the fact or the members have changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /**
   * Returns the known fact. The first call asks Redis for it, and creates the partitions if there are none.
   *
   * @throws {RedisError} if Redis cannot be asked.
   * @throws {TypeError} if the queue is on another number of servers than this client, or has no partitions and this
   * client does not know how many to create.
   */
  known(signal?: AbortSignal): Promise<Fact> {
    if (this.#fact !== undefined) return Promise.resolve(this.#fact);
    return this.#loaded(signal);
  }

  /**
   * Returns a fact that is at most {@link FRESH} milliseconds old: asks again unless a recent sign of life has returned
   * it. For calls that no script checks against the fact, such as counting messages.
   */
  async fresh(signal?: AbortSignal): Promise<Fact> {
    const isFresh = performance.now() - this.#attendedAt < FRESH;
    return this.#fact !== undefined && isFresh ? this.#fact : await this.ask(signal);
  }

  /** Asks for the current fact. If Redis holds an older one, as after a restart from an old copy, that is replaced. */
  async ask(signal?: AbortSignal): Promise<Fact> {
    const known = this.#fact;
    if (known === undefined) return await this.#loaded(signal);
    const args = { fact: formatFact(known), notice: this.notice };
    const { queue } = this.#first;
    this.learn(await queue.read("ask for the partitions of", advanceFact, args, { signal }));
    return this.#fact ?? known;
  }

  /** Takes over a fact, unless a later one is known or it is malformed. */
  learn(text: string): void {
    const fact = parseFact(text);
    if (fact === undefined) return;
    if (this.#fact !== undefined && !isLater(fact, this.#fact)) return;
    this.#fact = fact;
    this.#notify();
  }

  /** Makes this process a member with these roles, besides those that it has, and starts to listen for changes. */
  attend(roles: Roles): void {
    this.#roles = { ...this.#roles, ...roles };
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#first.server.subscriber.listen(this.notice, this);
    }
    this.#attendNow();
  }

  onSubscribed(): void {
    this.#attendNow();
  }

  onMessage(message: string): void {
    if (message === MEMBERS) this.#attendNow();
    else if (message === RELEASED) this.#notify();
    else this.learn(message);
  }

  /** Publishes that a partition was released. That is only a hint, so it never rejects. */
  async announceRelease(): Promise<void> {
    await this.#first.server.connections.background.publish(this.notice, RELEASED).catch(() => {});
  }

  /** Stops to attend; resolves when Redis has removed this member, or could not be reached. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#pause.end();
    this.#work.stopped();
    await this.#attending;
    if (!this.#hasBegun) return;
    this.#first.server.subscriber.unlisten(this.notice, this);
    if (this.#first.server.connections.background.status === "ready") {
      await this.#sendAttendance(true).catch(() => {});
    }
  }

  /** Loads the fact once for all concurrent callers; each caller stops waiting when its own signal is aborted. */
  #loaded(signal?: AbortSignal): Promise<Fact> {
    this.#loading ??= this.#load().finally(() => (this.#loading = undefined));
    if (signal === undefined) return this.#loading;
    return orAborted(this.#loading, signal);
  }

  async #load(): Promise<Fact> {
    // A client that attends has the background connection open anyway. One that only takes then opens no other.
    const through = this.#hasBegun ? "background" : "commands";
    this.learn(await loadFact(this.#queue, this.#first, this.#creation, this.notice, through));
    return this.#fact as Fact;
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #attendNow(): void {
    this.#isAttendDue = true;
    this.#attending ??= this.#attend().finally(() => (this.#attending = undefined));
  }

  async #attend(): Promise<void> {
    clearTimeout(this.#timer);
    while (this.#isAttendDue && !this.#isClosed) {
      this.#isAttendDue = false;
      try {
        // The first process with the queue open has to create the partitions.
        if (this.#fact === undefined) await this.known();
        await this.#sendAttendance(false);
        this.#work.succeeded();
        this.#pause.reset();
      } catch (error) {
        if (this.#isClosed) return;
        if (error instanceof UncreatedError && this.#roles.isExclusive === true) {
          this.#timer = setTimeout(() => this.#attendNow(), CREATION);
          return;
        }
        const doing = `cannot ask for the partitions of queue "${this.#queue}"`;
        this.#work.failed(error instanceof RedisError ? error : new RedisError(doing, error));
        await this.#pause.wait();
        this.#isAttendDue = true;
      }
    }
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#attendNow(), this.#interval);
  }

  /**
   * Milliseconds until the next sign of life. Its reply has to show in time that another exclusive consumer is late.
   */
  get #interval(): number {
    if (this.#roles.isExclusive !== true) return INTERVAL;
    const left = this.#members.flatMap(({ name, idle }) =>
      this.#exclusive.includes(name) ? [LATE - idle] : [],
    );
    return Math.max(MIN_INTERVAL, Math.min(EXCLUSIVE_INTERVAL, ...left));
  }

  async #sendAttendance(isGone: boolean): Promise<void> {
    const { queue, server } = this.#first;
    const member = formatMember({ name: this.#id, roles: this.#roles });
    const { background } = server.connections;
    const args = { member, timeout: MEMBER_TIMEOUT, gone: isGone ? 1 : 0 };
    const sentAt = performance.now();
    let attendance = await queue.run(background, attend, args);
    // With other roles a process is another entry of the ZSET. The old one goes after the new one has come, so that the
    // process is a member all the time.
    const former = this.#announced;
    if (former !== "" && former !== member) {
      attendance = await queue.run(background, attend, { ...args, member: former, gone: 1 });
    }
    const { fact, members } = attendance;
    if (fact !== undefined) this.learn(fact);
    this.#attendedAt = sentAt;
    // Only a hint: the others learn the same with their next signs of life.
    if (isGone || member !== this.#announced) {
      await background.publish(this.notice, MEMBERS).catch(() => {});
    }
    this.#announced = member;
    const before = this.#signature;
    this.#members = members.flatMap((one) => parseMember(one.member, one.idle) ?? []);
    this.#exclusive = this.#members
      .filter(({ roles, idle }) => roles.isExclusive === true && idle < LATE)
      .map(({ name }) => name);
    if (this.#signature !== before) this.#notify();
  }

  /** The members and the exclusive consumers as one text, to notice changes. */
  get #signature(): string {
    return [...this.#members.map(formatMember), "", ...this.#exclusive].join();
  }
}

/** Settles as `doing` does, or rejects with the reason of `signal` once that is aborted. */
function orAborted<Result>(doing: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    doing.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Published when the members have changed. */
const MEMBERS = "members";

/** Published when an exclusive consumer has released a partition. */
const RELEASED = "released";

/** Milliseconds between two signs of life. */
const INTERVAL = 3000;

/** The same for an exclusive consumer, whose death has to be noticed sooner: others wait for its partitions. */
const EXCLUSIVE_INTERVAL = 800;
const MIN_INTERVAL = 20;

/** Milliseconds without a sign of life after which others take the partitions of an exclusive consumer. */
const LATE = 2500;

/** Milliseconds for which the reply to a sign of life counts as fresh, from when that was sent. */
const FRESH = 3000;

/** Milliseconds without a sign of life after which a process is no longer a member. */
export const MEMBER_TIMEOUT = 7000;

/** Milliseconds between two looks whether another process has created the partitions. */
const CREATION = 1000;
