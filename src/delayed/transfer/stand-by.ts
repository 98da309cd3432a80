import { randomUUID } from "node:crypto";
import { retire } from "../../lua/delayed/retire.ts";
import type { TransferReply } from "../../lua/delayed/transfer.ts";
import { run } from "../../lua/script.ts";
import type { QueueKeys } from "../../queue/keys.ts";
import type { Connections } from "../../redis/connections.ts";

/**
 * Whether a transfer task is active or stands by.
 *
 * If the tasks of all workers ran the script at each deadline, the cost of a deadline would grow with their
 * number. A task starts active. An active task whose deadline has passed, and which finds nothing to move since
 * another task moved it, stands by: it looks 100 to 200 ms after each deadline, and only for messages that
 * are overdue. If it finds any, the active task is gone or stalled, and it becomes active itself. Who moves
 * is a hint in Redis (`mover`), so that a head which was cancelled, rather than moved by somebody, makes nobody
 * stand by: who moves writes it ten times a second, and who finds nothing reads it. Nothing is leased: a dead
 * active task costs one lateness of 200 ms. One that is closed says so, by a wake-up of `0`, which makes
 * every task active again until the next deadline.
 */
export class StandBy {
  /** The task's name in Redis, when it is the one that moves. */
  readonly task = randomUUID();
  #isOn = false;
  #isOnDuty = true;
  /** When the task last said in Redis that it moves, by `performance.now()`. */
  #claimedAt = -Infinity;

  get isOn(): boolean {
    return this.#isOn;
  }

  /** Milliseconds by which messages have to be overdue. */
  get grace(): number {
    return this.#isOn || !this.#isOnDuty ? OVERDUE : 0;
  }

  /** Milliseconds from a deadline to the look at it, anew each time. */
  get delay(): number {
    return this.#isOn ? STAND_BY * (1 + Math.random()) : 0;
  }

  /** The task is active again. */
  end(): void {
    this.#isOn = false;
  }

  /** Off duty a task takes only what those on duty have let become overdue. */
  setDuty(isOnDuty: boolean): void {
    this.#isOnDuty = isOnDuty;
    this.#isOn = false;
  }

  /** Whether a transfer that begins at `now` says in Redis that this task moves, if it moves any. */
  isClaimDue(now: number): boolean {
    return this.#isOn || now > this.#claimedAt + CLAIM;
  }

  /** Redis was told so at `at`. */
  onClaimed(at: number): void {
    this.#claimedAt = at;
  }

  /** Decides from what a transfer found; `awaited` is the deadline that the task had expected. */
  onTransferred(reply: TransferReply, awaited: number): void {
    if (reply.moved > 0) {
      this.#isOn = false;
    } else if (reply.isOutrun) {
      const hasPassed = awaited <= reply.serverTime && awaited < reply.next;
      if (hasPassed && this.#isOnDuty) this.#isOn = true;
    }
  }

  /** The task ends. If it fails to say so, those that stand by find out by themselves, a little later. */
  async retire({ background }: Connections, keys: QueueKeys): Promise<void> {
    if (this.#isOn || background.status !== "ready") return;
    const args = { channel: keys.channel, task: this.task };
    await run(background, retire, keys, args).catch(() => {});
  }
}

/** A task that stands by looks this many to twice as many milliseconds after a deadline. */
const STAND_BY = 100;

/** It takes only messages that are late by more than this, in milliseconds. */
const OVERDUE = 50;

/** A task that moves says so in Redis this often, in milliseconds. */
const CLAIM = 100;
