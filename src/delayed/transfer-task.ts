import type { Connections } from "../redis/connections.ts";
import { DeadlineTimer } from "../time/deadline-timer.ts";
import { QuarantineError, RedisError, type DelaylineError } from "../errors.ts";
import { isRefusedForNow } from "../failure.ts";
import type { Queue } from "../queue/queue.ts";
import { retire } from "../lua/delayed/retire.ts";
import { run } from "../lua/script.ts";
import { pick } from "../lua/family.ts";
import { sweep, transfer, type TransferReply } from "../lua/delayed/transfer.ts";
import { LAST_DEADLINE } from "../lua/fragments/replied.ts";
import { Pause } from "../time/pause.ts";
import { SpreadInterval } from "../time/spread-interval.ts";
import type { ServerClock } from "../time/server-clock.ts";
import type { Listener, Subscriber } from "../redis/subscriber.ts";
import type { Troubles, Work } from "../redis/troubles.ts";
import { StandBy } from "./stand-by.ts";
import { Tidier } from "./tidier.ts";

/**
 * The transfer task moves due messages of one queue to its ready LIST, or to its stream if it is reliable. There is one per queue and client,
 * however many handles exist.
 *
 * It subscribes to the queue's channel first, then transfers once, then lives from four events:
 *
 * - subscribed (again, after a reconnect): sweep now, since wake-ups may have been missed;
 * - a wake-up with a deadline: the timer may only move earlier; a wake-up of `0`: sweep now;
 * - the timer fires: transfer now;
 * - every 30 s or so: sweep. It is only a backstop, for wake-ups that got lost.
 *
 * A sweep is a transfer that also tells whether there is something to tidy and whether the queue is
 * paused, in one script. If it moves messages of which this task did not know, wake-ups do not arrive (a
 * proxy that filters, a Cluster whose nodes do not reach each other), and the task is deaf: then it sweeps
 * every second, until it hears a wake-up. One that is still under way makes a task deaf for a moment,
 * which does no harm.
 *
 * A transfer moves one batch. While batches are full the next follows at once; then the timer is set for
 * the first message that is left. A wake-up that is heard while a transfer is under way may be about a
 * message that came after it, so both are merged by minimum.
 *
 * It is active or stands by while another task moves; see {@link StandBy}.
 *
 * Paused. While the queue is paused the task sweeps on the same occasions, which moves nothing, and does
 * nothing else: the timer is not armed. Who pauses or resumes says so by a wake-up of `0`.
 *
 * No error ends the task. It is told to the client's troubles, and tried again after a growing pause.
 */
export class TransferTask implements Listener {
  readonly #queue: Queue;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #pauses: Notes;
  readonly #report: (error: DelaylineError) => void;
  readonly #onTransferred: (reply: TransferReply) => void;
  readonly #work: Work;

  readonly #standBy = new StandBy();
  readonly #timer = new DeadlineTimer(() => this.#look(), "punctual");
  readonly #tidier: Tidier;
  readonly #sweeps: typeof SWEEPS;
  readonly #sweepTimer = new SpreadInterval(() => {
    this.#sweepDue = "time";
    this.#look();
  });
  readonly #pause = new Pause(100, 5000);
  #isDeaf = false;
  #isFailing = false;
  #isClosed = false;

  /** The deadline that the timer is armed for: the first that this task knows of. */
  #awaited = Infinity;
  /** While a transfer is under way: the earliest deadline heard meanwhile. */
  #heard = Infinity;
  #transferring: Promise<void> | undefined;
  /** Why the next transfer is a sweep, if it is one. */
  #sweepDue: "subscribed" | "called" | "time" | undefined;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly subscriber: Subscriber;
      readonly clock: ServerClock;
      readonly pauses: Notes;
      readonly report: (error: DelaylineError) => void;
      readonly troubles: Troubles;
      /** Is told what each transfer has found. It must not throw. */
      readonly onTransferred?: (reply: TransferReply) => void;
    },
    sweeps = SWEEPS,
  ) {
    this.#queue = queue;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#pauses = shared.pauses;
    this.#report = shared.report;
    this.#onTransferred = shared.onTransferred ?? (() => {});
    this.#work = shared.troubles.work();
    this.#clock.onStep(() => this.#onStep());
    this.#tidier = new Tidier(queue.name, queue.keys, queue.layout, shared);
    this.#sweeps = sweeps;
    this.#armSweep();
    // Subscribe before the first transfer. The other way round, a message offered between the two
    // would publish to nobody and wait for the next sweep.
    shared.subscriber.listen(queue.keys.channel, this);
  }

  /** Whether wake-ups seem to get lost, so that it sweeps every second. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  /** Whether another task moves, and this one only looks after it. */
  get isStandingBy(): boolean {
    return this.#standBy.isOn;
  }

  onSubscribed(): void {
    this.#sweepDue ??= "subscribed";
    this.#look();
  }

  onMessage(message: string): void {
    this.#setDeaf(false);
    const deadline = Number(message);
    // No number, or for ever.
    if (!(deadline <= LAST_DEADLINE)) return;
    // "Look now": somebody has left, moved the messages about, paused the queue or let it go on.
    if (deadline === 0) {
      this.lookAgain();
    } else if (this.#transferring !== undefined) {
      this.#heard = Math.min(this.#heard, deadline);
    } else if (deadline < this.#awaited && !this.#isFailing) {
      this.#await(deadline);
    }
  }

  /** Sweeps now: what this task knows may be wrong. */
  lookAgain(): void {
    this.#standBy.end();
    this.#sweepDue ??= "called";
    if (!this.#isFailing) this.#look();
  }

  /** Stops; resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#sweepTimer.clear();
    this.#timer.clear();
    await this.#transferring;
    await this.#tidier.close();
    await this.#retire();
  }

  /** The server's clock was set: the timer may be armed for a wrong instant. */
  #onStep(): void {
    if (this.#transferring !== undefined || this.#isFailing || this.#isClosed) return;
    this.#await(this.#awaited);
  }

  #armSweep(): void {
    this.#sweepTimer.reset(this.#isDeaf ? this.#sweeps.deaf : this.#sweeps.ordinary);
  }

  #setDeaf(isDeaf: boolean): void {
    if (isDeaf === this.#isDeaf || this.#isClosed) return;
    this.#isDeaf = isDeaf;
    this.#armSweep();
  }

  /** Transfers now, or once more after the transfer that is under way. */
  #look(): void {
    if (this.#isClosed || this.#isResting) return;
    if (this.#transferring === undefined) {
      this.#transferring = this.#transfer().finally(() => (this.#transferring = undefined));
    } else {
      this.#heard = 0;
    }
  }

  /** Whether there is nothing to do, since the queue is paused. */
  get #isResting(): boolean {
    return this.#pauses.isPaused === true && this.#sweepDue === undefined;
  }

  async #transfer(): Promise<void> {
    try {
      let next = { deadline: Infinity, isDue: false };
      do {
        next = await this.#moveBatch(next.deadline);
      } while (next.isDue && !this.isStandingBy && !this.#isResting && !this.#isClosed);
      this.#isFailing = false;
      this.#pause.reset();
      this.#work.succeeded();
      if (!this.#isClosed) this.#await(next.deadline);
    } catch (error) {
      if (this.#isClosed) return;
      this.#isFailing = true;
      // It may have been a sweep. Wake-ups were not listened to meanwhile.
      this.#sweepDue = "subscribed";
      const failure = new RedisError(
        `cannot transfer due messages of queue "${this.#queue.name}"`,
        error,
      );
      this.#work.failed(failure);
      // A failover passes by itself; anything else that Redis refuses somebody has to mend.
      const isPassing = failure.reply === undefined || isRefusedForNow(error);
      const pause = Math.min(this.#pause.take(), isPassing ? PASSING : Infinity);
      this.#timer.reset(performance.now() + pause);
    }
  }

  /** Moves one batch; returns what to await next. `told`: what the batch before returned. */
  async #moveBatch(told: number): Promise<{ deadline: number; isDue: boolean }> {
    this.#heard = Infinity;
    const sentAt = performance.now();
    const sweepDue = this.#sweepDue;
    const script = pick(sweepDue === undefined ? transfer : sweep, this.#queue.layout);
    this.#sweepDue = undefined;
    const isClaiming = this.#isFailing || this.#standBy.isClaimDue(sentAt);
    const reply = await run(this.#connections.background, script, this.#queue.keys, {
      limit: BATCH,
      grace: this.#standBy.grace,
      task: this.#standBy.task,
      claim: isClaiming ? 1 : 0,
      makes: this.#queue.makesStream ? 1 : 0,
    });
    if (isClaiming && reply.moved > 0) this.#standBy.onClaimed(sentAt);
    this.#clock.observe(reply.serverTime, sentAt);
    if (reply.isPaused !== undefined) this.#pauses.note(reply.isPaused);
    this.#tidier.note(reply.moved, reply.untidy);
    if (reply.quarantined > 0)
      this.#report(new QuarantineError(this.#queue.name, reply.quarantined));
    if (sweepDue === "time" && !this.#isAnnounced(reply, told)) this.#setDeaf(true);
    this.#standBy.onTransferred(reply, this.#awaited);
    this.#onTransferred(reply);
    const deadline = Math.min(reply.next, this.#heard);
    // Whole milliseconds, as in the script: a fraction of one, which only others write, is not due yet.
    return { deadline, isDue: deadline <= Math.floor(reply.serverTime) };
  }

  /** Whether a wake-up or an earlier reply told of the messages that a transfer has moved, if any. */
  #isAnnounced({ moved, quarantined, serverTime }: TransferReply, told: number): boolean {
    const isKnown = Math.min(this.#awaited, told) <= serverTime || this.#heard !== Infinity;
    return moved + quarantined === 0 || isKnown;
  }

  /** Arms the timer by the estimate of the server's clock; the script decides what is due. */
  #await(deadline: number): void {
    this.#awaited = this.#isResting ? Infinity : deadline;
    const remaining = this.#clock.remaining(this.#awaited);
    this.#timer.reset(performance.now() + remaining + this.#standBy.delay);
  }

  async #retire(): Promise<void> {
    const { background } = this.#connections;
    if (this.isStandingBy || background.status !== "ready") return;
    const { keys } = this.#queue;
    // If it fails, those that stand by find out by themselves, a little later.
    await run(background, retire, keys, { channel: keys.channel, task: this.#standBy.task }).catch(
      () => {},
    );
  }
}

/** Who knows whether the queue is paused, and is told. */
interface Notes {
  readonly isPaused: boolean | undefined;
  note(isPaused: boolean): void;
}

/** The longest pause after a failure that passes by itself, in milliseconds. */
const PASSING = 1000;

/** Messages per transfer: some 200 microseconds of Redis's time. */
const BATCH = 100;

/** Milliseconds between two sweeps, on average; `deaf`: while wake-ups get lost. */
const SWEEPS = { ordinary: 30_000, deaf: 1000 };
