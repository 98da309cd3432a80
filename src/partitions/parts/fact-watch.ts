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
 * What this client knows about the partitions of one queue, and about the processes that have it open.
 *
 * Partition 0 knows how many there are. The fact is asked for once, on another server if that of partition 0 cannot be
 * reached; after that it comes by a notice on a channel
 * of its own, with the reply to each sign of life, and with each script that is refused since Redis knows more. Whoever
 * acts on an old fact is refused, so nobody has to know it at once.
 *
 * A sign of life is sent every three seconds once {@link attend} was called, or oftener by who consumes exclusively. Who
 * joins or leaves says so on the channel, too. So all processes share out the partitions in the same way, but for a
 * moment; that is only advice.
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
  /** The member of which the others were told. */
  #announced = "";
  #loading: Promise<Fact> | undefined;
  #attending: Promise<void> | undefined;
  #isAttendDue = false;
  /** When the last sign of life was sent that was answered. */
  #attendedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;
  #isClosed = false;
  readonly #closing = new AbortController();

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

  /** What is known; undefined before {@link known} has resolved for the first time. */
  get fact(): Fact | undefined {
    return this.#fact;
  }

  /** The processes that have the queue open, this one among them if it attends. */
  get members(): readonly Member[] {
    return this.#members;
  }

  /** The names of those among them who consume exclusively and were seen within {@link LATE} milliseconds. */
  get exclusive(): readonly string[] {
    return this.#exclusive;
  }

  /** This process's name among the members. */
  get self(): string {
    return this.#id;
  }

  /** The channel on which changes are told. */
  get notice(): string {
    return `${this.#first.queue.keys.partitions}:notice`;
  }

  /** Calls `listener` whenever the fact or the members have changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /**
   * The fact; asks for it, and creates it if there is none.
   *
   * @throws {RedisError} if Redis cannot be asked.
   * @throws {TypeError} if the queue is on another number of servers than this client, or has no partitions and this
   * client does not say how many it is to have.
   */
  known(signal?: AbortSignal): Promise<Fact> {
    if (this.#fact !== undefined) return Promise.resolve(this.#fact);
    return this.#loaded(signal);
  }

  /**
   * The fact as it was a moment ago: asks again unless a sign of life has told it lately. For what no script checks,
   * such as how many messages there are.
   */
  async fresh(signal?: AbortSignal): Promise<Fact> {
    const isFresh = performance.now() - this.#attendedAt < FRESH;
    return this.#fact !== undefined && isFresh ? this.#fact : await this.ask(signal);
  }

  /** The fact as it is now. If Redis knows less than this client, as after a restart from an old copy, it is told. */
  async ask(signal?: AbortSignal): Promise<Fact> {
    const known = this.#fact;
    if (known === undefined) return await this.#loaded(signal);
    const args = { fact: formatFact(known), notice: this.notice };
    const { queue } = this.#first;
    this.learn(await queue.read("ask for the partitions of", advanceFact, args, { signal }));
    return this.#fact ?? known;
  }

  /** Somebody says that this is the fact. */
  learn(text: string): void {
    const fact = parseFact(text);
    if (fact === undefined) return;
    if (this.#fact !== undefined && !isLater(fact, this.#fact)) return;
    this.#fact = fact;
    this.#tell();
  }

  /** From now on this process is a member, and hears of changes. */
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
    else if (message === RELEASED) this.#tell();
    else this.learn(message);
  }

  /** Tells the others that a partition was released. It is only a hint: it never rejects. */
  async tellReleased(): Promise<void> {
    await this.#first.server.connections.background.publish(this.notice, RELEASED).catch(() => {});
  }

  /** Leaves; resolves when Redis knows, or could not be told. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closing.abort();
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

  /** Asks once for all who ask at the same time; each may leave when its signal is aborted. */
  #loaded(signal?: AbortSignal): Promise<Fact> {
    this.#loading ??= this.#load().finally(() => (this.#loading = undefined));
    if (signal === undefined) return this.#loading;
    return orAborted(this.#loading, signal);
  }

  async #load(): Promise<Fact> {
    // Who attends has the connection of the background open anyway. Who only takes opens no other one then.
    const through = this.#hasBegun ? "background" : "commands";
    this.learn(await loadFact(this.#queue, this.#first, this.#creation, this.notice, through));
    return this.#fact as Fact;
  }

  #tell(): void {
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
        // Who is among the first has to create it.
        if (this.#fact === undefined) await this.known(this.#closing.signal);
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

  /** Until the next sign of life: no later than it may turn out that another one has died. */
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
    // Its former roles stand there as another member; never is there none.
    const former = this.#announced;
    if (former !== "" && former !== member) {
      attendance = await queue.run(background, attend, { ...args, member: former, gone: 1 });
    }
    const { fact, members } = attendance;
    if (fact !== undefined) this.learn(fact);
    this.#attendedAt = sentAt;
    // It is only a hint, which the next sign of life replaces.
    if (isGone || member !== this.#announced)
      await background.publish(this.notice, MEMBERS).catch(() => {});
    this.#announced = member;
    const known = [...this.#members.map(formatMember), "", ...this.#exclusive].join();
    this.#members = members.flatMap((one) => parseMember(one.member, one.idle) ?? []);
    this.#exclusive = this.#members
      .filter(({ roles, idle }) => roles.isExclusive === true && idle < LATE)
      .map(({ name }) => name);
    if ([...this.#members.map(formatMember), "", ...this.#exclusive].join() !== known) this.#tell();
  }
}

/** Resolves or rejects as `doing` does, or rejects with the reason of `signal` once that is aborted. */
function orAborted<Result>(doing: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    doing.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** What is published when the members have changed. */
const MEMBERS = "members";

/** What is published when a partition was released that is consumed exclusively. */
const RELEASED = "released";

/** Milliseconds between two signs of life. */
const INTERVAL = 3000;

/** The same for who consumes exclusively: others wait until it is known to be dead. */
const EXCLUSIVE_INTERVAL = 800;
const MIN_INTERVAL = 20;

/** Milliseconds without a sign of life after which others take the partitions of who consumes exclusively. */
const LATE = 2500;
/** So many milliseconds after a sign of life was sent what it told is still taken for fresh. */
const FRESH = 3000;

/** After so many milliseconds without one a process is no member any more. */
export const MEMBER_TIMEOUT = 7000;

/** Milliseconds until it is looked again whether somebody has created the partitions. */
const CREATION = 1000;
