import { randomUUID } from "node:crypto";
import { RedisError, type DelaylineError } from "../errors.ts";
import { giveBack } from "../lua/ready/give-back.ts";
import { run } from "../lua/script.ts";
import type { Connections } from "../redis/connections.ts";
import type { Troubles, Work } from "../redis/troubles.ts";
import { Pause } from "../time/pause.ts";
import type { Taken } from "./blocking-connection.ts";
import type { Waiters } from "../queue/consuming/waiters.ts";

/**
 * Puts messages that nobody took back to the head of their LIST, however often it has to try.
 *
 * A message has no id, so each attempt carries the same receipt: where Redis has it, the messages are
 * back already. The receipt is removed after that.
 *
 * If Redis refuses the messages, they stay in this process, and are tried again after a growing pause.
 * Whoever waits by then gets them. That is safe only as long as every attempt was refused: once a reply
 * was lost the messages may be back in Redis, and would be taken twice.
 */
export class GiveBack {
  readonly #queue: string;
  readonly #waiters: Waiters<Taken>;
  readonly #connections: Connections;
  readonly #report: (error: DelaylineError) => void;
  readonly #work: Work;
  readonly #closeTimeout: number;
  /** When it gives up, on the monotonic clock. */
  #givesUpAt = Infinity;
  /** The removals of receipts that are under way. */
  readonly #removals = new Set<Promise<unknown>>();

  /** `queue` is what errors call it; `waiters` are those who may get what Redis refuses. */
  constructor(
    queue: string,
    waiters: Waiters<Taken>,
    shared: {
      readonly connections: Connections;
      readonly report: (error: DelaylineError) => void;
      readonly troubles: Troubles;
      readonly closeTimeout: number;
    },
  ) {
    this.#queue = queue;
    this.#waiters = waiters;
    this.#connections = shared.connections;
    this.#report = shared.report;
    this.#work = shared.troubles.work();
    this.#closeTimeout = shared.closeTimeout;
  }

  /**
   * Puts messages back, oldest first, each to where it was taken from. Never rejects; resolves when this process
   * has none of them any more.
   */
  async putBack(messages: readonly Taken[]): Promise<void> {
    const bySource = new Map<string, Taken[]>();
    for (const message of messages) {
      const { ready } = message.source;
      const others = bySource.get(ready);
      if (others === undefined) bySource.set(ready, [message]);
      else others.push(message);
    }
    // At once: where one is refused, the others need not wait for it.
    await Promise.all(Array.from(bySource.values(), (group) => this.#putBackToOne(group)));
  }

  /** From now on failures are final once `closeTimeout` is over. */
  close(): void {
    this.#givesUpAt = Math.min(this.#givesUpAt, performance.now() + this.#closeTimeout);
  }

  /** Resolves when the receipts are removed, or could not be. */
  async receiptRemoved(): Promise<void> {
    await Promise.all(this.#removals);
    this.#work.ended();
  }

  async #putBackToOne(messages: readonly Taken[]): Promise<void> {
    // Backwards, since each batch goes to the head: the oldest comes last and stands first.
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
        const { background } = this.#connections;
        await run(background, giveBack, { ready, receipts }, { receipt }, batch);
        this.#work.succeeded();
        // Nobody waits for this, and a receipt that stays does no harm. It is dropped after a day.
        const removal: Promise<unknown> = background
          .zrem(receipts, receipt)
          .catch(() => {})
          .finally(() => this.#removals.delete(removal));
        this.#removals.add(removal);
        return;
      } catch (error) {
        const isFinal = performance.now() > this.#givesUpAt;
        const what = isFinal ? "gave up giving back" : "cannot give back yet";
        const doing = `${what} ${batch.length} message(s) to ${this.#queue}`;
        const failure = new RedisError(doing, error);
        if (isFinal) {
          this.#report(failure);
          return;
        }
        this.#work.failed(failure);
        mayBeBack ||= failure.reply === undefined;
      }
      await pause.wait();
      if (!mayBeBack && this.#waiters.waitingCount > 0) {
        this.#work.stopped();
        await this.#putBackToOne(this.#waiters.giveLast(batch));
        return;
      }
    }
  }
}

/** Messages per script. */
const BATCH = 500;
