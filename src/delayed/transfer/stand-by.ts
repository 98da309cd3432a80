import { randomUUID } from "node:crypto";
import { retire, type TransferReply } from "../../lua/delayed/transfer.ts";
import { headDeadline, nextDue, nextTurn } from "../../lua/queue/next-due.ts";
import { asFlag } from "../../lua/reply.ts";
import { run } from "../../lua/script.ts";
import type { QueueKeys } from "../../queue/keys.ts";
import type { Queue } from "../../queue/queue.ts";
import type { Connections } from "../../redis/connections.ts";

/**
 * Decides whether a transfer task is active or stands by.
 *
 * If the tasks of all workers ran the script at each deadline, the cost of a deadline would grow with their number. A
 * task starts active. When the deadline of an active task has passed, but another task has moved its messages, the task
 * stands by: it looks 100 to 200 ms after each deadline, and only for overdue messages. If it finds any, the active
 * task is gone or stalled, and this task becomes active itself. A look only asks for the earliest deadline: there may be
 * one for each message and each task that stands by.
 *
 * A hint in Redis, the key `mover`, names the task that moved last. A task that moves messages writes it, at most ten times a
 * second; a task that finds nothing due reads it. Without the hint, tasks would also stand by when the head was cancelled rather
 * than moved. As long as no other task seems to move messages, a task writes it ever more rarely, down to once in five seconds. Two
 * tasks may both be active for that long, at twice the cost.
 *
 * Nothing is leased. A dead active task makes messages late once, by 200 ms. A task that is closed publishes a wake-up
 * of `0`, which makes every other task active until the next deadline.
 */
export class StandBy {
  /** The name that the task writes into `mover`. It begins with what the task's release can do; see {@link PACES}. */
  readonly task = `${PACES}${randomUUID()}`;
  #isOn = false;
  #isOnDuty = true;
  /** Whether the last transfer found payloads in the LIST of a reliable queue. */
  #hasListed = false;
  /** When the task last wrote `mover` (`queueTime.now()`). */
  #claimedAt = -Infinity;
  /** Milliseconds until it writes it again. */
  #claimInterval = MIN_CLAIM_INTERVAL;

  /** Whether the task stands by. */
  get isOn(): boolean {
    return this.#isOn;
  }

  /** By how many milliseconds a message has to be overdue before the task moves it. */
  get grace(): number {
    return this.#isOn || !this.#isOnDuty ? OVERDUE : 0;
  }

  /** How many milliseconds after a deadline the task looks; random each time, to spread tasks that stand by. */
  get delay(): number {
    return this.#isOn ? MIN_DELAY * (1 + Math.random()) : 0;
  }

  /** Makes the task active. */
  end(): void {
    this.#isOn = false;
  }

  /** Sets whether the task is on duty. Off duty, it moves only what the tasks on duty have left overdue. */
  setDuty(isOnDuty: boolean): void {
    this.#isOnDuty = isOnDuty;
    this.#isOn = false;
  }

  /**
   * Looks for work while the task stands by. Returns the next deadline (epoch ms); or undefined if a transfer is needed,
   * because a message is overdue, or the LIST of a reliable queue may hold payloads. `hasFlow`: whether messages may wait
   * for their turn.
   *
   * Rejects with ioredis's errors.
   */
  async look(
    { clock, keys, layout, server }: Queue,
    hasFlow: boolean,
  ): Promise<number | undefined> {
    // Only a transfer tells that the LIST is empty again.
    if (this.#hasListed) return undefined;
    const { background } = server.connections;
    const isReliable = layout.into === "stream";
    const script = hasFlow ? nextTurn : isReliable ? nextDue : headDeadline;
    // Scripts, since a plain ZRANGE would reply with the payload of the head as well.
    const [next = Infinity, hasListed] = await Promise.all([
      run(background, script, keys, {}),
      isReliable && background.exists(keys.ready).then(asFlag),
    ]);
    // The estimate of the clock is good enough: the transfer decides.
    return hasListed || next <= clock.now() - this.grace ? undefined : next;
  }

  /**
   * Whether a transfer that begins at `now` (`queueTime.now()`) has to write `mover` if it moves messages: 0: no; 1:
   * yes, and first check that it may move any; 2: yes. Sweeps check, and so does whoever takes over; what fails is tried
   * again by a sweep.
   */
  claimAt(now: number, isSweep: boolean): 0 | 1 | 2 {
    if (isSweep || this.#isOn || this.#claimedAt === -Infinity) return 1;
    return now > this.#claimedAt + this.#claimInterval ? 2 : 0;
  }

  /** A transfer that began at `at` (`queueTime.now()`) has written `mover`. */
  onClaimed(at: number): void {
    this.#claimedAt = at;
    this.#claimInterval = Math.min(2 * this.#claimInterval, MAX_CLAIM_INTERVAL);
  }

  /** Decides by the result of a transfer; `awaited` is the deadline that the timer was armed for. */
  onTransferred(reply: TransferReply, awaited: number): void {
    this.#hasListed = reply.hasListed;
    if (reply.moved + reply.dropped.length > 0) {
      this.#isOn = false;
    } else if (awaited <= reply.serverTime && awaited < reply.next) {
      // Another task has moved it, or it was cancelled.
      this.#claimInterval = MIN_CLAIM_INTERVAL;
      if (reply.isOutrun && this.#isOnDuty) this.#isOn = true;
    }
  }

  /** Announces that the task ends. If that fails, a task that stands by notices a little later. */
  async retire({ background }: Connections, keys: QueueKeys): Promise<void> {
    if (background.status !== "ready") return;
    const args = { channel: keys.channel, task: this.task };
    await run(background, retire, keys, args).catch(() => {});
  }
}

/** How the names of tasks begin that ask the conditions of messages. Older releases deliver without. */
export const ASKS = "asks:";

/** The same of tasks that keep the queue's rate as well. */
export const PACES = `${ASKS}paces:`;

/** A task that stands by looks between one and two times this many milliseconds after a deadline. */
const MIN_DELAY = 100;

/** A task that stands by, or is off duty, moves only messages that are late by this many milliseconds. */
const OVERDUE = 50;

/** The shortest and the longest interval between two writes of `mover`, in milliseconds. */
const MIN_CLAIM_INTERVAL = 100;
const MAX_CLAIM_INTERVAL = 5000;
