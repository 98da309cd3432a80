import { randomUUID } from "node:crypto";
import { attend } from "../../lua/partitions/attend.ts";
import { processName } from "../../queue/process-name.ts";
import type { Listener } from "../../redis/subscriber.ts";
import { Task } from "../../run/task.ts";
import { Pause } from "../../time/pause.ts";
import { UncreatedError } from "./creation.ts";
import type { FactWatch } from "./fact-watch.ts";
import { formatMember, MEMBER_TIMEOUT, parseMember, type Member, type Roles } from "./member.ts";
import type { Part } from "./part.ts";
import { queueTime } from "../../time/runtime.ts";

/** The names of the processes that work on a change of the number of partitions. */
export interface Changers {
  readonly alive: readonly string[];
  readonly silent: readonly string[];
}

/**
 * The processes that have a partitioned queue open, including this one.
 *
 * Once {@link attend} was called, this process sends a sign of life every three seconds, or more often if it consumes
 * exclusively. Processes that join or leave publish that on the channel of notices, too. So all processes soon divide
 * the partitions in the same way; until then they may disagree, which is harmless since the division is only advice.
 */
export class Members implements Listener {
  readonly #first: Part;
  readonly #watch: FactWatch;
  readonly #onChange: () => void;
  readonly #onSeen: () => boolean;
  readonly #onUncreated: () => Promise<void>;
  readonly #id = `${processName()}/${randomUUID()}`;
  readonly #signs: Task;
  #all: readonly Member[] = [];
  #exclusive: readonly string[] = [];
  #roles: Roles = {};
  /** This process as a member, as the others know it; empty before the first sign of life. */
  #announced = "";
  #hasBegun = false;
  /** Whether something waits until this process sees the others again. */
  #isWaiting = false;
  readonly #closing = new AbortController();

  /**
   * `onChange` is called whenever the members have changed, or an exclusive consumer has released a partition; `onSeen`
   * whenever this process has seen the others, and returns whether something waits until it sees them again; `onUncreated` while it consumes exclusively and there are no partitions.
   */
  constructor(
    queue: string,
    first: Part,
    watch: FactWatch,
    {
      onChange,
      onSeen,
      onUncreated,
    }: {
      readonly onChange: () => void;
      readonly onSeen: () => boolean;
      readonly onUncreated: () => Promise<void>;
    },
  ) {
    this.#first = first;
    this.#watch = watch;
    this.#signs = new Task(
      () => this.#attend(),
      `cannot ask for the partitions of queue "${queue}"`,
      first.queue.server.troubles.work(),
      new Pause(50, 1000),
      () => this.#isSteady,
      { name: this.#id, needs: () => this.#all.map(({ name }) => name) },
    );
    this.#onChange = onChange;
    this.#onSeen = onSeen;
    this.#onUncreated = onUncreated;
  }

  /** Whether nothing waits for the next sign of life as long as all members live. */
  get #isSteady(): boolean {
    if (this.#watch.fact === undefined) return true;
    return !this.#isWaiting && !this.#all.some(({ roles }) => roles.isChanging === true);
  }

  /** All members, including this process if it attends. */
  get all(): readonly Member[] {
    return this.#all;
  }

  /** The names of the members that consume exclusively and were seen within {@link LATE} milliseconds. */
  get exclusive(): readonly string[] {
    return this.#exclusive;
  }

  /**
   * The processes that work on a change of the number of partitions: those seen within {@link LATE} milliseconds, and
   * those that have not said since that they are done.
   */
  get changers(): Changers {
    const changers = this.#all.filter(({ roles }) => roles.isChanging === true);
    return {
      alive: changers.filter(({ idle }) => idle < LATE).map(({ name }) => name),
      silent: changers.filter(({ idle }) => idle >= LATE).map(({ name }) => name),
    };
  }

  /** This process's name among the members. */
  get self(): string {
    return this.#id;
  }

  /** Makes this process a member, sets these of its roles, and starts to listen for changes. Other roles stay. */
  attend(roles: Roles): void {
    this.#roles = { ...this.#roles, ...roles };
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      // Signs of life need the background connection, so the fact need not open another one.
      this.#watch.useBackground();
      this.#first.queue.server.subscriber.listen(this.#watch.notice, this);
    }
    this.#signs.wake();
  }

  onSubscribed(): void {
    this.#signs.wake();
  }

  onMessage(message: string): void {
    if (message === MEMBERS) this.#signs.wake();
    else if (message === RELEASED) this.#onChange();
    else this.#watch.learn(message);
  }

  /** Publishes that this process has released a partition. That is only a hint, so it never rejects. */
  announceRelease(): Promise<void> {
    return this.#publish(RELEASED);
  }

  /** Stops attending; resolves when Redis has removed this member, or could not be reached. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#signs.close();
    if (!this.#hasBegun) return;
    this.#first.queue.server.subscriber.unlisten(this.#watch.notice, this);
    if (this.#first.queue.server.connections.background.status === "ready") {
      await this.#sendSign(true).catch(() => {});
    }
  }

  /** Returns the milliseconds until the next sign of life. */
  async #attend(): Promise<number> {
    try {
      // The first process with the queue open has to create the partitions.
      if (this.#watch.fact === undefined) await this.#watch.known({ signal: this.#closing.signal });
    } catch (error) {
      if (!(error instanceof UncreatedError) || this.#roles.isExclusive !== true) throw error;
      await this.#onUncreated();
      return CREATION;
    }
    await this.#sendSign(false);
    return this.#interval;
  }

  /** Milliseconds until the next sign of life, whose reply may have to show that an exclusive consumer is late. */
  get #interval(): number {
    if (this.#roles.isChanging === true) return EXCLUSIVE_INTERVAL;
    if (this.#roles.isExclusive !== true) return INTERVAL;
    const left = this.#all.flatMap(({ name, idle }) =>
      this.#exclusive.includes(name) ? [LATE - idle] : [],
    );
    return Math.max(MIN_INTERVAL, Math.min(EXCLUSIVE_INTERVAL, ...left));
  }

  /** Sends a sign of life, or the last one if `isGone`, and learns from the reply. */
  async #sendSign(isGone: boolean): Promise<void> {
    const { queue } = this.#first;
    const member = formatMember({ name: this.#id, roles: this.#roles });
    const { background } = queue.server.connections;
    const args = { member, timeout: MEMBER_TIMEOUT, gone: isGone ? 1 : 0 };
    const sentAt = queueTime.now();
    let attendance = await queue.run(background, attend, args);
    // A process with other roles is another element of the ZSET. Remove the old one only after adding the new one, so
    // that the process is a member all the time.
    const former = this.#announced;
    if (former !== "" && former !== member) {
      attendance = await queue.run(background, attend, { ...args, member: former, gone: 1 });
    }
    const { fact, members } = attendance;
    if (fact !== undefined) this.#watch.learn(fact);
    this.#watch.confirm(sentAt);
    // Redis may have gone back to an earlier one.
    if (!isGone && fact !== this.#watch.text)
      await this.#watch.ask({ signal: this.#closing.signal });
    // Only a hint: the others learn the same with their next signs of life.
    if (isGone || member !== this.#announced) await this.#publish(MEMBERS);
    this.#announced = member;
    const before = this.#signature;
    this.#all = members.flatMap((one) => parseMember(one.member, one.idle) ?? []);
    this.#exclusive = this.#all
      .filter(({ roles, idle }) => roles.isExclusive === true && idle < LATE)
      .map(({ name }) => name);
    if (this.#signature !== before) this.#onChange();
    this.#isWaiting = this.#onSeen();
  }

  async #publish(hint: string): Promise<void> {
    const { background } = this.#first.queue.server.connections;
    await background.publish(this.#watch.notice, hint).catch(() => {});
  }

  /** The members and the exclusive consumers as one text, to notice changes. */
  get #signature(): string {
    return [...this.#all.map(formatMember), "", ...this.#exclusive].join();
  }
}

/** Published when the members have changed. */
const MEMBERS = "members";

/** Published when an exclusive consumer has released a partition. */
const RELEASED = "released";

/** Milliseconds between two signs of life. */
const INTERVAL = 3000;

/**
 * The same for an exclusive consumer and for a process that changes the number of partitions. Their death has to be
 * noticed sooner: others wait for its partitions, or have to finish its change.
 */
const EXCLUSIVE_INTERVAL = 800;
const MIN_INTERVAL = 20;

/**
 * Milliseconds without a sign of life after which others take the partitions of an exclusive consumer, or go on with
 * the change of a process.
 */
export const LATE = 2500;

/** Milliseconds between two looks whether another process has created the partitions. */
const CREATION = 1000;
