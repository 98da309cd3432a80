import type { Connections } from "../../redis/connections.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import { QuarantineError, RedisError, type DelaylineError } from "../../errors.ts";
import { isRefusedForNow } from "../../failure.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import { pick } from "../../lua/family.ts";
import { sweep, transfer, type TransferReply } from "../../lua/delayed/transfer.ts";
import { LAST_DEADLINE } from "../../lua/fragments/message/replied.ts";
import { Pause } from "../../time/pause.ts";
import type { ServerClock } from "../../time/server-clock.ts";
import { transfers } from "../../observe/events.ts";
import type { Listener, Subscriber } from "../../redis/subscriber.ts";
import type { Work } from "../../redis/troubles.ts";
import { StandBy } from "./stand-by.ts";
import { SweepRhythm, type Duty, type Sweeps } from "./sweep-rhythm.ts";
import { Tidier } from "./tidier.ts";
import type { TransferOptions } from "./transfer-options.ts";

/**
 * The transfer task moves due messages of one queue to its ready LIST, or to its stream if it is reliable. There is
 * one per queue and client, however many handles exist.
 *
 * It subscribes to the queue's channel first, then transfers once, then lives from four events:
 *
 * - subscribed (again, after a reconnect): sweep now, since wake-ups may have been missed;
 * - a wake-up with a deadline: the timer may only move earlier; a wake-up of `0`: sweep now;
 * - the timer fires: transfer now;
 * - every 30 s or so: sweep. It is only a backstop, for wake-ups that got lost.
 *
 * A sweep is a transfer that also tells whether there is something to tidy and whether the queue is paused, in one
 * script. If it moves messages of which this task did not know, wake-ups do not arrive (a proxy that filters, a
 * Cluster whose nodes do not reach each other), and the task is deaf: then it sweeps every second, until it hears a
 * wake-up. One that is still under way makes a task deaf for a moment, which does no harm.
 *
 * A transfer moves one batch. While batches are full the next follows at once; then the timer is set for the first
 * message that is left. A wake-up that is heard while a transfer is under way may be about a message that came
 * after it, so both are merged by minimum.
 *
 * It is active or stands by while another task moves; see {@link StandBy}.
 *
 * On duty, or off duty. Where processes share out many queues, a task may be told that others look after this one.
 * Then it knows of no deadlines: it only sweeps, and moves what is overdue. See {@link SweepRhythm}.
 *
 * Held. While it is held it sends nothing, not even a sweep. It sweeps as soon as it is let go.
 * Paused. While the queue is paused the task sweeps on the same occasions, which moves nothing, and does
 * nothing else: the timer is not armed. Who pauses or resumes says so by a wake-up of `0`.
 * No error ends the task. It is told to the client's troubles, and tried again after a growing pause.
 */
export class TransferTask implements Listener {
  readonly #queue: Queue;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #pauses: Pick<PauseWatch, "isPaused" | "note">;
  readonly #report: (error: DelaylineError) => void;
  readonly #onTransferred: (reply: TransferReply) => void;
  readonly #onRefused: (error: unknown) => boolean;
  readonly #knownFact: () => string | undefined;
  readonly #subscriber: Subscriber;
  readonly #work: Work;

  readonly #standBy = new StandBy();
  readonly #timer = new DeadlineTimer(() => this.#look(), "punctual");
  readonly #tidier: Tidier;
  readonly #endSteps: () => void;
  readonly #sweeps: SweepRhythm;
  readonly #pause = new Pause(100, 5000);
  #isFailing = false;
  #isHeld = false;
  #isClosed = false;

  /** The deadline that the timer is armed for: the first that this task knows of. */
  #awaited = Infinity;
  /** While a transfer is under way: the earliest deadline heard meanwhile. */
  #heard = Infinity;
  #transferring: Promise<void> | undefined;
  /** Why the next transfer is a sweep, if it is one. */
  #sweepDue: "subscribed" | "called" | "time" | undefined;

  constructor(queue: Queue, shared: TransferOptions, sweeps?: Sweeps) {
    this.#queue = queue;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#pauses = shared.pauses;
    this.#report = shared.report;
    this.#onTransferred = shared.onTransferred ?? (() => {});
    this.#onRefused = shared.onRefused ?? (() => false);
    this.#knownFact = shared.knownFact ?? (() => undefined);
    this.#subscriber = shared.subscriber;
    this.#work = shared.troubles.work();
    this.#endSteps = this.#clock.onStep(() => this.#onStep());
    this.#tidier = new Tidier(queue.name, queue.keys, queue.layout, shared);
    this.#sweeps = new SweepRhythm(() => {
      this.#sweepDue = "time";
      this.#look();
    }, sweeps);
    // Subscribe before the first transfer. The other way round, a message offered between the two
    // would publish to nobody and wait for the next sweep.
    shared.subscriber.listen(queue.keys.channel, this);
  }

  /** Whether wake-ups seem to get lost, so that it sweeps every second. */
  get isDeaf(): boolean {
    return this.#sweeps.isDeaf;
  }

  /** Whether another task moves, and this one only looks after it: it stands by, or is off duty. */
  get isStandingBy(): boolean {
    return this.#standBy.isOn || !this.#sweeps.isOnDuty;
  }

  /** Whether this task looks after the queue; see above. At first it is alone on duty. */
  setDuty(duty: Duty): void {
    if (this.#isClosed) return;
    const wasOnDuty = this.#sweeps.isOnDuty;
    this.#sweeps.setDuty(duty);
    const { isOnDuty } = this.#sweeps;
    if (isOnDuty === wasOnDuty) return;
    this.#standBy.setDuty(isOnDuty);
    if (isOnDuty) this.lookAgain();
    else if (!this.#isFailing) this.#await(Infinity);
  }

  /** Holds the task, or lets it go. What it has sent before is still carried out. */
  setHeld(isHeld: boolean): void {
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) return;
    this.#sweepDue = "called";
    this.#look();
  }

  onSubscribed(): void {
    this.#sweepDue ??= "subscribed";
    this.#look();
  }

  onMessage(message: string): void {
    this.#sweeps.setDeaf(false);
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
    this.#sweeps.close();
    this.#endSteps();
    this.#timer.clear();
    await this.#transferring;
    await this.#tidier.close();
    await this.#standBy.retire(this.#connections, this.#queue.keys);
  }

  /** Stops as {@link close} does, and leaves the channel, while the client goes on without this queue. */
  async leave(): Promise<void> {
    this.#work.ended();
    this.#subscriber.unlisten(this.#queue.keys.channel, this);
    await this.close();
  }

  /** The server's clock was set: the timer may be armed for a wrong instant. */
  #onStep(): void {
    if (this.#transferring !== undefined || this.#isFailing || this.#isClosed) return;
    this.#await(this.#awaited);
  }

  /** Transfers now, or once more after the transfer that is under way. */
  #look(): void {
    if (this.#isClosed || this.#isHeld || this.#isResting) return;
    if (this.#transferring === undefined) {
      this.#transferring = this.#transfer().finally(() => (this.#transferring = undefined));
    } else {
      this.#heard = 0;
    }
  }

  /** Whether no batch follows, though there may be more that is due. */
  get #isDone(): boolean {
    return this.#standBy.isOn || this.#isHeld || this.#isResting || this.#isClosed;
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
      } while (next.isDue && !this.#isDone);
      this.#isFailing = false;
      this.#pause.reset();
      this.#work.succeeded();
      if (!this.#isClosed) this.#await(next.deadline);
    } catch (error) {
      if (this.#isClosed) return;
      this.#isFailing = true;
      // It may have been a sweep. Wake-ups were not listened to meanwhile.
      this.#sweepDue = "subscribed";
      if (this.#onRefused(error)) {
        this.#timer.reset(performance.now() + REFUSED);
        return;
      }
      const doing = `cannot transfer due messages of queue "${this.#queue.name}"`;
      const failure = new RedisError(doing, error);
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
    const args = {
      limit: BATCH,
      grace: this.#standBy.grace,
      task: this.#standBy.task,
      claim: isClaiming ? 1 : 0,
      makes: this.#queue.makesStream ? 1 : 0,
    };
    const { background } = this.#connections;
    const reply = await this.#queue.run(background, script, args, [], this.#knownFact());
    const { moved, quarantined } = reply;
    if (isClaiming && moved > 0) this.#standBy.onClaimed(sentAt);
    this.#clock.observe(reply.serverTime, sentAt);
    if (reply.isPaused !== undefined) this.#pauses.note(reply.isPaused);
    this.#tidier.note(moved, reply.untidy);
    if (quarantined > 0) this.#report(new QuarantineError(this.#queue.name, quarantined));
    if (sweepDue === "time" && !this.#isAnnounced(reply, told)) this.#sweeps.setDeaf(true);
    this.#standBy.onTransferred(reply, this.#awaited);
    if (moved > 0) this.#count(reply);
    this.#onTransferred(reply);
    const deadline = Math.min(reply.next, this.#heard);
    // Whole milliseconds, as in the script: a fraction of one, which only others write, is not due yet.
    return { deadline, isDue: deadline <= Math.floor(reply.serverTime) - this.#standBy.grace };
  }

  #count({ moved, dueSince = NaN, serverTime }: TransferReply): void {
    const { counters } = this.#queue;
    const lateness = Math.max(0, serverTime - dueSince);
    counters.transferred += moved;
    counters.systemLateness.record(lateness, moved);
    if (!transfers.hasSubscribers) return;
    transfers.publish({ queue: counters.queue, count: moved, lateness });
  }

  /** Whether a wake-up or an earlier reply told of the messages that a transfer has moved, if any. */
  #isAnnounced({ moved, quarantined, serverTime }: TransferReply, told: number): boolean {
    const isKnown = Math.min(this.#awaited, told) <= serverTime || this.#heard !== Infinity;
    return moved + quarantined === 0 || isKnown;
  }

  /** Arms the timer by the estimate of the server's clock; the script decides what is due. */
  #await(deadline: number): void {
    this.#awaited = this.#isResting || !this.#sweeps.isOnDuty ? Infinity : deadline;
    const remaining = this.#clock.remaining(this.#awaited);
    this.#timer.reset(performance.now() + remaining + this.#standBy.delay);
  }
}

/** The longest pause after a failure that passes by itself, in milliseconds. */
const PASSING = 500;

/** Milliseconds until it tries again what was refused, and was somebody's affair. */
const REFUSED = 100;

/** Messages per transfer: some 200 microseconds of Redis's time. */
const BATCH = 100;
