import { DeadlineTimer } from "../../time/deadline-timer.ts";
import { QuarantineError, RedisError } from "../../errors.ts";
import { isRefusedForNow } from "../../failure.ts";
import { messageIdAt } from "../../queue/message/message.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Queue } from "../../queue/queue.ts";
import {
  pacedSweep,
  pacedTransfer,
  sweep,
  transfer,
  type TransferReply,
} from "../../lua/delayed/transfer.ts";
import { heldFact } from "../../lua/guarded.ts";
import { drops, transfers, type DroppedEvent } from "../../observe/events.ts";
import { LAST_DEADLINE } from "../../lua/fragments/deadline.ts";
import { Pause } from "../../time/pause.ts";
import type { Listener } from "../../redis/subscriber.ts";
import type { Work } from "../../redis/troubles.ts";
import { StandBy } from "./stand-by.ts";
import { SweepRhythm, type Duty, type Sweeps } from "./sweep-rhythm.ts";
import { Tidier } from "./tidier.ts";
import { networkTime, queueTime } from "../../time/runtime.ts";

/**
 * Moves due messages of one queue to its ready LIST, or to its stream if the queue is reliable. A client has one
 * transfer task per queue, however many handles there are.
 *
 * The task subscribes to the queue's channel, transfers once, and then reacts to four events:
 *
 * - **subscribed** (again, after a reconnect): it sweeps at once, since it may have missed wake-ups.
 * - **wake-up**: a deadline moves the timer, but only to an earlier instant. `0` means "look now": it sweeps.
 * - **timer**: it transfers.
 * - **sweep interval**, every 30 s or so: it sweeps. These sweeps are only a backstop for lost wake-ups.
 *
 * When the server's clock turns out to have been set, the timer is armed anew.
 *
 * A *transfer* moves one batch and returns the next deadline. While more messages are due, the next batch follows at
 * once. Then the timer is armed. A wake-up that arrives during a transfer may announce a message that was offered after
 * the script ran, so the timer is armed for the earlier of the two deadlines.
 *
 * A *sweep* is a transfer that also reports, in the same script, whether there is something to tidy and whether the
 * queue is paused.
 *
 * The following conditions change this behaviour. Several can hold at once.
 *
 * - **standing by**: another task moves the messages. This one looks later, and moves only what is overdue; see
 *   {@link StandBy}.
 * - **off duty**: other processes look after this queue ({@link setDuty}). The task ignores deadlines. It only sweeps,
 *   and moves only what is overdue; see {@link SweepRhythm}.
 * - **deaf**: a sweep at its interval moved messages that nothing had announced, so wake-ups seem to get lost (a proxy
 *   that filters them, Cluster nodes that do not reach each other). The task sweeps every second until it hears a
 *   wake-up. A wake-up that is merely late makes the task deaf for a moment, which does no harm.
 * - **paused**: the queue is paused. The task sweeps on the same occasions, but a sweep moves nothing, and the timer is
 *   not armed. Pausing and resuming publish a wake-up of `0`.
 * - **suspended**: the task sends nothing, not even a sweep. It sweeps as soon as it is resumed ({@link setSuspended}).
 * - **failing**: the last transfer failed. No error ends the task: the client's troubles report it, and the task sweeps
 *   after a growing pause, which wake-ups do not cut short.
 */
export class TransferTask implements Listener {
  readonly #queue: Queue;
  readonly #pauses: PauseWatch;
  readonly #onTransferred: (reply: TransferReply) => void;
  readonly #work: Work;

  readonly #standBy = new StandBy();
  readonly #timer: DeadlineTimer;
  /** Ends the pause after a failure. */
  readonly #retryTimer = new DeadlineTimer(() => this.#look(), networkTime);
  readonly #tidier: Tidier;
  readonly #stopListeningToClock: () => void;
  readonly #stopTelling: () => void;
  readonly #sweeps: SweepRhythm;
  readonly #pause = new Pause(100, 5000);
  #isFailing = false;
  #isSuspended = false;
  #isClosed = false;

  /** The deadline that the timer is armed for: the earliest known one. */
  #awaited = Infinity;
  /** The earliest deadline heard during the current transfer. */
  #heard = Infinity;
  #transferring: Promise<void> | undefined;
  /** Whether the key `listed` is set, as far as this task knows. */
  #isMarked = false;
  /** Whether the queue has a flow, as far as this task knows. */
  #isPaced = false;
  /** Why the next transfer has to be a sweep. */
  #sweepDue: "subscribed" | "called" | "interval" | undefined;

  /** `onTransferred` is called with the reply of each transfer. It must not throw. */
  constructor(
    queue: Queue,
    pauses: PauseWatch,
    onTransferred: (reply: TransferReply) => void = () => {},
    sweeps?: Sweeps,
  ) {
    this.#queue = queue;
    this.#pauses = pauses;
    this.#onTransferred = onTransferred;
    this.#work = queue.server.troubles.work();
    this.#timer = new DeadlineTimer(() => this.#look(), queueTime, queue.server.busyWait);
    this.#stopListeningToClock = queue.clock.onStep(() => this.#onClockStep());
    // Whoever waits for the queue's messages learns of them from this task.
    this.#stopTelling = queue.server.blocks.hear(queue.keys.ready);
    this.#tidier = new Tidier(queue);
    this.#sweeps = new SweepRhythm(
      () => {
        this.#sweepDue = "interval";
        this.#look();
      },
      queue.server.steps,
      sweeps,
    );
    // Subscribe before the first transfer. The other way round, a message offered between the two would publish to
    // nobody and wait for the next sweep.
    queue.server.subscriber.listen(queue.keys.channel, this);
  }

  /** Whether wake-ups seem to get lost. */
  get isDeaf(): boolean {
    return this.#sweeps.isDeaf;
  }

  /** Whether the task moves only what is overdue, since it stands by or is off duty. */
  get isStandingBy(): boolean {
    return this.#standBy.isOn || !this.#sweeps.isOnDuty;
  }

  /** Sets whether this task looks after the queue. A task starts alone on duty. */
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

  /** Suspends or resumes the task. A script that was sent before still runs. */
  setSuspended(isSuspended: boolean): void {
    if (isSuspended === this.#isSuspended) return;
    this.#isSuspended = isSuspended;
    if (isSuspended) return;
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
    // Not a number, or a deadline that never comes.
    if (!(deadline <= LAST_DEADLINE)) return;
    if (!this.#sweeps.isOnDuty) this.#tellOfMessages();
    // "Look now": a task has left, the messages were moved, or the queue was paused or resumed.
    if (deadline === 0) {
      this.lookAgain();
    } else if (this.#transferring !== undefined) {
      this.#heard = Math.min(this.#heard, deadline);
    } else if (this.#isFailing) {
      return;
    } else if (deadline < this.#awaited) {
      this.#await(deadline);
    } else {
      // The new head is not earlier than the former one, which has left by then: the timer may be armed for an instant
      // that has passed on the server's clock.
      this.#refreshTime();
    }
  }

  /** Sweeps now, because what this task knows may be wrong. */
  lookAgain(): void {
    this.#standBy.end();
    this.#sweepDue ??= "called";
    if (!this.#isFailing) this.#look();
  }

  /** Stops; resolves once nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopTelling();
    this.#sweeps.close();
    this.#stopListeningToClock();
    this.#timer.clear();
    this.#retryTimer.clear();
    await this.#transferring;
    await this.#tidier.close();
    await this.#standBy.retire(this.#queue.server.connections, this.#queue.keys);
  }

  /** Stops as {@link close} does, and unsubscribes: the client stays open without this queue. */
  async leave(): Promise<void> {
    this.#work.ended();
    this.#queue.server.subscriber.unlisten(this.#queue.keys.channel, this);
    await this.close();
  }

  /** The server's clock was set, so the timer may be armed for a wrong instant. */
  #onClockStep(): void {
    if (this.#transferring !== undefined || this.#isFailing || this.#isClosed) return;
    this.#await(this.#awaited);
  }

  /** Transfers now, or once more after the current transfer. */
  #look(): void {
    if (this.#isBarred) return;
    if (this.#transferring === undefined) {
      this.#transferring = this.#transfer().finally(() => (this.#transferring = undefined));
    } else {
      this.#heard = 0;
    }
  }

  /** Whether no further batch follows, even if more messages are due. */
  get #isStopped(): boolean {
    return this.#standBy.isOn || this.#isBarred;
  }

  /** Whether nothing may be moved. */
  get #isBarred(): boolean {
    return this.#isClosed || this.#isSuspended || this.#isResting;
  }

  /** Whether the queue is paused, and no sweep is due. */
  get #isResting(): boolean {
    return this.#pauses.isPaused === true && this.#sweepDue === undefined;
  }

  async #transfer(): Promise<void> {
    try {
      let next = { deadline: Infinity, isDue: false };
      do {
        next = await this.#moveBatch(next.deadline);
      } while (next.isDue && !this.#isStopped);
      if (this.#isFailing) this.#retryTimer.clear();
      this.#isFailing = false;
      this.#pause.reset();
      this.#work.succeeded();
      if (!this.#isClosed) this.#await(next.deadline);
    } catch (error) {
      if (this.#isClosed) return;
      // Others may move messages in the meantime.
      this.#tellOfMessages();
      const isFirst = !this.#isFailing;
      this.#isFailing = true;
      // The failed transfer may have been a sweep, and wake-ups are ignored until the next one.
      this.#sweepDue = "subscribed";
      if (heldFact(error) !== undefined) {
        this.#retryIn(REFUSED_PAUSE);
        return;
      }
      const doing = `cannot transfer due messages of queue "${this.#queue.name}"`;
      const failure = new RedisError(doing, error);
      // ioredis sends a command whose node of a Cluster it has just lost to any other node. A replica refuses it, which
      // is no trouble unless the next attempt is refused as well.
      const isAstray = failure.reply === "READONLY" && this.#queue.server.isCluster;
      if (!isFirst || !isAstray) this.#work.failed(failure);
      // A lost connection or a failover passes by itself. Any other refusal lasts until its cause is repaired.
      const isPassing = failure.reply === undefined || isRefusedForNow(error);
      const pause = Math.min(this.#pause.take(), isPassing ? MAX_PASSING_PAUSE : Infinity);
      this.#retryIn(pause);
    }
  }

  #retryIn(pause: number): void {
    this.#timer.clear();
    this.#retryTimer.reset(networkTime.now() + pause);
  }

  /** Moves one batch; `announced` is the next deadline that the batch before it returned. */
  async #moveBatch(announced: number): Promise<{ deadline: number; isDue: boolean }> {
    this.#heard = Infinity;
    const sweepDue = this.#sweepDue;
    this.#sweepDue = undefined;
    if (sweepDue === undefined && this.#standBy.isOn && !this.#isFailing) {
      const next = await this.#standBy.look(this.#queue, this.#isPaced);
      if (next !== undefined || this.#isBarred) {
        const now = this.#queue.clock.now();
        if (this.#awaited <= now) this.#tellOfMessages();
        return this.#whatFollows(next ?? Infinity, now);
      }
    }
    const passing = this.#queue.server.fuse.passed(this.#queue.memory);
    if (passing !== undefined) {
      await passing;
      // Redis went back to an older copy, and the queue is paused.
      if (this.#isBarred) return { deadline: Infinity, isDue: false };
    }
    const kind = sweepDue === undefined ? "transfer" : "sweep";
    const wasPaced = this.#isPaced;
    const reply = await this.#move(kind, sweepDue === "interval" && !this.#sweeps.isDeaf);
    this.#isPaced = reply.isPaced ?? wasPaced;
    if (this.#isPaced && !wasPaced && reply.isPaused !== true) {
      // The queue has got a flow, and nothing was moved. Look again, as it says.
      this.#sweepDue = sweepDue ?? "called";
      return { deadline: 0, isDue: true };
    }
    this.#tidier.note(reply.moved, reply.untidy);
    if (sweepDue === "interval" && !this.#isAnnounced(reply, announced)) this.#sweeps.setDeaf(true);
    // Its deadline has passed, so this task or another one has moved a message; or the LIST holds some.
    const hasPassed = this.#awaited <= reply.serverTime;
    if (reply.moved > 0 || hasPassed || reply.isListed) this.#tellOfMessages();
    this.#standBy.onTransferred(reply, this.#awaited);
    this.#onTransferred(reply);
    return this.#whatFollows(reply.next, reply.serverTime);
  }

  /** The deadline to await next, and whether it has come: `next` is the earliest in Redis, as of `serverTime`. */
  #whatFollows(next: number, serverTime: number): { deadline: number; isDue: boolean } {
    const deadline = Math.min(next, this.#heard);
    // The script compares whole milliseconds. A score with a fraction, which only foreign writers produce, is not due
    // within its own millisecond.
    return { deadline, isDue: deadline <= Math.floor(serverTime) - this.#standBy.grace };
  }

  /**
   * Runs a transfer or a sweep once, and passes on what its reply says about the clock, the pause and the quarantine. One
   * that `isRoutine` waits for those of other queues.
   */
  async #move(kind: "transfer" | "sweep", isRoutine: boolean): Promise<TransferReply> {
    const queue = this.#queue;
    const sentAt = queueTime.now();
    const scripts = this.#isPaced ? PACED[kind] : SCRIPTS[kind];
    const claim = this.#standBy.claimAt(sentAt, kind === "sweep");
    const args = {
      limit: isRoutine ? ROUTINE_BATCH : BATCH,
      grace: this.#standBy.grace,
      task: this.#standBy.task,
      known: queue.memory.claimedAt,
      claim,
      makes: queue.makesStream ? 1 : 0,
      shares: queue.shares(),
      arriving: queue.arriving(),
      mark: this.#isMarked ? 0 : 1,
    };
    const { background } = queue.server.connections;
    const fact = queue.knownFact();
    const reply = await (isRoutine
      ? queue.runTogether(background, scripts, args, fact)
      : queue.run(background, scripts, args, [], fact));
    const { moved, dropped, quarantined } = reply;
    if (claim > 0 && moved + dropped.length > 0) this.#standBy.onClaimed(sentAt);
    queue.clock.observe(reply.serverTime, sentAt);
    queue.memory.note(reply);
    this.#isMarked = reply.isListed ?? (this.#isMarked || (moved > 0 && reply.wentInto === "list"));
    if (reply.isPaused !== undefined) this.#pauses.note(reply.isPaused);
    if (quarantined > 0) queue.report(new QuarantineError(queue.name, quarantined));
    if (moved > 0) this.#count(reply);
    if (dropped.length > 0) this.#countDropped(dropped);
    return reply;
  }

  #tellOfMessages(): void {
    this.#queue.server.blocks.happened(this.#queue.keys.ready);
  }

  #count({ moved, dueSince = NaN, serverTime, waited }: TransferReply): void {
    const { counters } = this.#queue;
    const lateness = Math.max(0, serverTime - dueSince - (waited ?? 0));
    counters.transferred += moved;
    if (waited !== undefined) counters.waited.record(waited, moved);
    counters.systemLateness.record(lateness, moved);
    if (!transfers.hasSubscribers) return;
    transfers.publish({ queue: counters.queue, count: moved, lateness, at: serverTime });
  }

  #countDropped(dropped: TransferReply["dropped"]): void {
    const { counters } = this.#queue;
    counters.dropped += dropped.length;
    if (!drops.hasSubscribers) return;
    for (const { address, key, reason } of dropped) {
      const id = messageIdAt(address);
      const event: DroppedEvent = {
        queue: counters.queue,
        id,
        key: key === "" ? undefined : key,
        reason,
      };
      drops.publish(event);
    }
  }

  /** Whether a wake-up or an earlier reply announced the messages that a transfer took, if it took any. */
  #isAnnounced(reply: TransferReply, announced: number): boolean {
    const { moved, dropped, quarantined, serverTime } = reply;
    const isKnown = Math.min(this.#awaited, announced) <= serverTime || this.#heard !== Infinity;
    return moved + dropped.length + quarantined === 0 || isKnown;
  }

  /** Arms the timer by the estimate of the server's clock. The script decides what is really due. */
  #await(deadline: number): void {
    this.#awaited = this.#isResting || !this.#sweeps.isOnDuty ? Infinity : deadline;
    const remaining = this.#queue.clock.remaining(this.#awaited);
    if (this.#awaited !== Infinity) this.#refreshTime();
    this.#timer.reset(queueTime.now() + remaining + this.#standBy.delay);
  }

  /** If the server's clock was set while nothing happened, the reply arms the timer anew. */
  #refreshTime(): void {
    const { clock, server } = this.#queue;
    if (clock.age > FRESH) server.connections.refreshTime();
  }
}

/** The scripts of a queue without a flow, and with one. */
const SCRIPTS = { transfer, sweep };
const PACED = { transfer: pacedTransfer, sweep: pacedSweep };

/** The longest pause, in milliseconds, after a failure that passes by itself. */
const MAX_PASSING_PAUSE = 500;

/** Milliseconds for which the estimate of the server's clock is taken for true without a question. */
const FRESH = 1000;

/** Messages per batch: some 200 microseconds of Redis's time. */
const BATCH = 100;

/** The same for a sweep that shares its command with others. Usually it finds none. */
const ROUTINE_BATCH = 10;

/** Milliseconds until the next attempt, after a refusal for an old fact. This process knows the newer one by then. */
const REFUSED_PAUSE = 100;
