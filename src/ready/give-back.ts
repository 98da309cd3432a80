import { randomUUID } from "node:crypto";
import { RedisError } from "../errors.ts";
import { giveBack } from "../lua/ready/ready.ts";
import { run } from "../lua/script.ts";
import type { Server } from "../redis/server.ts";
import type { Work } from "../redis/troubles.ts";
import { Pause } from "../time/pause.ts";
import { grouped } from "../queue/grouped.ts";
import type { Waiters } from "../run/waiters.ts";
import type { Taken } from "./pops.ts";
import { networkTime } from "../time/runtime.ts";

/** What a taker uses of the server that its LISTs are on. */
export type TakerServer = Pick<
  Server,
  "connections" | "report" | "troubles" | "unreachableTimeout"
>;

/**
 * Puts unclaimed messages back to the heads of their LISTs, and retries until that has worked.
 *
 * A message in a LIST has no id, so every attempt for a batch carries the same receipt. If Redis already has the
 * receipt, the messages are back. The receipt is removed afterwards.
 *
 * While Redis refuses the messages, this process keeps them and retries after a growing pause. Waiters that have come
 * by then get them instead. That is safe only as long as every attempt was refused: once a reply was lost, the messages
 * may be back in Redis, and delivering them here would deliver them twice.
 */
export class GiveBack {
  readonly #queue: string;
  readonly #waiters: Waiters<Taken>;
  readonly #server: TakerServer;
  readonly #work: Work;
  /** From when on a failure is final (`networkTime.now()`). */
  #givesUpAt = Infinity;
  /** Give-backs and removals of receipts that are under way. */
  readonly #underWay = new Set<Promise<unknown>>();

  /** `queue` is the name of the queue in errors. `waiters` may get messages that Redis refuses. */
  constructor(queue: string, waiters: Waiters<Taken>, server: TakerServer) {
    this.#queue = queue;
    this.#waiters = waiters;
    this.#server = server;
    this.#work = server.troubles.work();
  }

  /**
   * Puts messages back, oldest first, each to the LIST that it was taken from. Never rejects; resolves once this
   * process holds none of them.
   */
  async putBack(messages: readonly Taken[]): Promise<void> {
    const bySource = grouped(messages, ({ source }) => source.ready);
    // Concurrently: while one LIST refuses, the messages of the others need not wait.
    const groups = Array.from(bySource.values(), (group) => this.#putBackToOne(group));
    await this.#track(Promise.all(groups));
  }

  /** Makes failures final once `unreachableTimeout` is over. */
  close(): void {
    this.#givesUpAt = Math.min(
      this.#givesUpAt,
      networkTime.now() + this.#server.unreachableTimeout,
    );
  }

  /** Resolves once nothing is under way: each message is back or given up, each receipt removed or left to expire. */
  async done(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    this.#work.ended();
  }

  #track<Result>(work: Promise<Result>): Promise<Result> {
    const tracked: Promise<Result> = work.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
    return tracked;
  }

  async #putBackToOne(messages: readonly Taken[]): Promise<void> {
    // Backwards: each batch goes to the head, so the oldest has to be pushed last.
    for (let end = messages.length; end > 0; end -= BATCH) {
      await this.#putBackBatch(messages.slice(Math.max(0, end - BATCH), end));
    }
  }

  async #putBackBatch(batch: readonly Taken[]): Promise<void> {
    const { ready, receipts } = (batch[0] as Taken).source;
    const receipt = randomUUID();
    const pause = new Pause(100, 2000);
    let mayBeBack = false;
    for (;;) {
      try {
        const { background } = this.#server.connections;
        await run(background, giveBack, { ready, receipts }, { receipt }, batch);
        this.#work.succeeded();
        // No caller waits for this. A receipt that stays does no harm, and is dropped after a day.
        void this.#track(background.zrem(receipts, receipt).catch(() => {}));
        return;
      } catch (error) {
        const isFinal = networkTime.now() > this.#givesUpAt;
        const what = isFinal ? "gave up giving back" : "cannot give back yet";
        const doing = `${what} ${batch.length} message(s) to ${this.#queue}`;
        const failure = new RedisError(doing, error);
        if (isFinal) {
          this.#server.report(failure);
          return;
        }
        this.#work.failed(failure);
        mayBeBack ||= failure.reply === undefined;
      }
      await pause.wait();
      if (!mayBeBack && this.#waiters.pendingCount > 0) {
        this.#work.stopped();
        await this.#putBackToOne(this.#waiters.giveLast(batch));
        return;
      }
    }
  }
}

/** Messages per script. */
const BATCH = 500;
