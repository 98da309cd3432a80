import { randomUUID } from "node:crypto";
import type { Connections } from "../redis/connections.ts";
import { DeadlineTimer } from "../time/deadline-timer.ts";
import { QuarantineError, RedisError, type DelaylineError } from "../errors.ts";
import { isRefusedForNow } from "../failure.ts";
import type { QueueKeys } from "../queue/keys.ts";
import { retire } from "../lua/delayed/retire.ts";
import { run } from "../lua/script.ts";
import { pick, type Layout } from "../lua/family.ts";
import { sweep, transfer, type TransferReply } from "../lua/delayed/transfer.ts";
import { LAST_DEADLINE } from "../lua/fragments/replied.ts";
import { Pause } from "../time/pause.ts";
import { SpreadInterval } from "../time/spread-interval.ts";
import type { ServerClock } from "../time/server-clock.ts";
import type { Listener, Subscriber } from "../redis/subscriber.ts";
import type { Troubles, Work } from "../redis/troubles.ts";
import { Tidier } from "./tidier.ts";

/**
 * The transfer task moves due messages of one queue to its ready LIST. There is one per queue and client,
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
 * Stand-by. If the tasks of all workers ran the script at each deadline, the cost of a deadline would grow
 * with their number. So a task is active or stands by. It starts active. An active task whose deadline has
 * passed, and which finds nothing to move since another task moved it, stands by: it looks 100 to 200 ms
 * after each deadline, and only for messages that are overdue. If it finds any, the active task is gone or
 * stalled, and it becomes active itself. Who moves is a hint in Redis (`mover`), so that a head which was
 * cancelled, rather than moved by somebody, makes nobody stand by: who moves writes it ten times a second,
 * and who finds nothing reads it. Nothing is leased: a dead active task costs one lateness of 200 ms. One
 * that is closed says so, by a wake-up of `0`, which makes every task active again until the next
 * deadline.
 *
 * Paused. While the queue is paused the task sweeps on the same occasions, which moves nothing, and does
 * nothing else: the timer is not armed. Who pauses or resumes says so by a wake-up of `0`.
 *
 * No error ends the task. It is told to the client's troubles, and tried again after a growing pause.
 */
export class TransferTask implements Listener {
  readonly #queue: string;
  readonly #keys: QueueKeys;
  readonly #layout: Layout;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #pauses: Notes;
  readonly #report: (error: DelaylineError) => void;
  readonly #work: Work;

  readonly #id = randomUUID();
  readonly #timer = new DeadlineTimer(() => this.#look(), "punctual");
  readonly #tidier: Tidier;
  readonly #sweeps: typeof SWEEPS;
  readonly #sweepTimer = new SpreadInterval(() => {
    this.#sweepDue = "time";
    this.#look();
  });
  readonly #pause = new Pause(100, 5000);
  #isStandingBy = false;
  #isDeaf = false;
  #isFailing = false;
  #isClosed = false;

  /** The deadline that the timer is armed for: the first that this task knows of. */
  #awaited = Infinity;
  /** While a transfer is under way: the earliest deadline heard meanwhile. */
  #heard = Infinity;
  #transferring: Promise<void> | undefined;
  /** When it last said in Redis that it moves, by `performance.now()`. */
  #claimedAt = -Infinity;
  /** Why the next transfer is a sweep, if it is one. */
  #sweepDue: "subscribed" | "called" | "time" | undefined;

  constructor(
    queue: string,
    keys: QueueKeys,
    layout: Layout,
    shared: {
      readonly connections: Connections;
      readonly subscriber: Subscriber;
      readonly clock: ServerClock;
      readonly pauses: Notes;
      readonly report: (error: DelaylineError) => void;
      readonly troubles: Troubles;
    },
    sweeps = SWEEPS,
  ) {
    this.#queue = queue;
    this.#keys = keys;
    this.#layout = layout;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#pauses = shared.pauses;
    this.#report = shared.report;
    this.#work = shared.troubles.work();
    this.#clock.onStep(() => this.#onStep());
    this.#tidier = new Tidier(queue, keys, layout, shared);
    this.#sweeps = sweeps;
    this.#armSweep();
    // Subscribe before the first transfer. The other way round, a message offered between the two
    // would publish to nobody and wait for the next sweep.
    shared.subscriber.listen(keys.channel, this);
  }

  /** Whether wake-ups seem to get lost, so that it sweeps every second. */
  get isDeaf(): boolean {
    return this.#isDeaf;
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
      this.#isStandingBy = false;
      this.#sweepDue ??= "called";
      if (!this.#isFailing) this.#look();
    } else if (this.#transferring !== undefined) {
      this.#heard = Math.min(this.#heard, deadline);
    } else if (deadline < this.#awaited && !this.#isFailing) {
      this.#await(deadline);
    }
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
      } while (next.isDue && !this.#isStandingBy && !this.#isResting && !this.#isClosed);
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
        `cannot transfer due messages of queue "${this.#queue}"`,
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
    const script = pick(sweepDue === undefined ? transfer : sweep, this.#layout);
    this.#sweepDue = undefined;
    const isClaiming = this.#isFailing || this.#isStandingBy || sentAt > this.#claimedAt + CLAIM;
    const reply = await run(this.#connections.background, script, this.#keys, {
      limit: BATCH,
      grace: this.#isStandingBy ? OVERDUE : 0,
      task: this.#id,
      claim: isClaiming ? 1 : 0,
    });
    if (isClaiming && reply.moved > 0) this.#claimedAt = sentAt;
    this.#clock.observe(reply.serverTime, sentAt);
    if (reply.isPaused !== undefined) this.#pauses.note(reply.isPaused);
    this.#tidier.note(reply.moved, reply.untidy);
    if (reply.quarantined > 0) this.#report(new QuarantineError(this.#queue, reply.quarantined));
    if (sweepDue === "time" && !this.#isAnnounced(reply, told)) this.#setDeaf(true);
    this.#takeTurns(reply);
    const deadline = Math.min(reply.next, this.#heard);
    // Whole milliseconds, as in the script: a fraction of one, which only others write, is not due yet.
    return { deadline, isDue: deadline <= Math.floor(reply.serverTime) };
  }

  /** Whether a wake-up or an earlier reply told of the messages that a transfer has moved, if any. */
  #isAnnounced({ moved, quarantined, serverTime }: TransferReply, told: number): boolean {
    const isKnown = Math.min(this.#awaited, told) <= serverTime || this.#heard !== Infinity;
    return moved + quarantined === 0 || isKnown;
  }

  /** Decides from what a transfer found whether this task is active or stands by. */
  #takeTurns(reply: TransferReply): void {
    if (reply.moved > 0) {
      this.#isStandingBy = false;
    } else if (reply.isOutrun) {
      const hasPassed = this.#awaited <= reply.serverTime && this.#awaited < reply.next;
      if (hasPassed) this.#isStandingBy = true;
    }
  }

  /** Arms the timer by the estimate of the server's clock; the script decides what is due. */
  #await(deadline: number): void {
    this.#awaited = this.#isResting ? Infinity : deadline;
    const remaining = this.#clock.remaining(this.#awaited);
    const delay = this.#isStandingBy ? STAND_BY * (1 + Math.random()) : 0;
    this.#timer.reset(performance.now() + remaining + delay);
  }

  async #retire(): Promise<void> {
    const { background } = this.#connections;
    if (this.#isStandingBy || background.status !== "ready") return;
    const { channel } = this.#keys;
    // If it fails, those that stand by find out by themselves, a little later.
    await run(background, retire, this.#keys, { channel, task: this.#id }).catch(() => {});
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

/** A task that stands by looks this many to twice as many milliseconds after a deadline. */
const STAND_BY = 100;

/** It takes only messages that are late by more than this, in milliseconds. */
const OVERDUE = 50;

/** A task that moves says so in Redis this often, in milliseconds. */
const CLAIM = 100;
