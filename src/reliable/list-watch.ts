import { RedisError } from "../errors.ts";
import { replyOf } from "../failure.ts";
import { takeOver } from "../lua/reliable/take-over.ts";
import { createId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import type { Work } from "../redis/troubles.ts";
import { BlockingLoop } from "../run/blocking-loop.ts";
import { Task } from "../run/task.ts";
import { Pause } from "../time/pause.ts";

/**
 * Watches the ready LIST of a reliable queue, and moves its payloads to the stream.
 *
 * Programs that do not know that the queue is reliable push to the LIST: Java processes, or older releases. The watch
 * first takes over what the LIST holds, then blocks until a program pushes. It blocks by a BLMOVE from the head of the
 * LIST to the head of the same LIST, which changes nothing. So nothing is lost, whenever the process or the connection
 * ends.
 *
 * The watch is **off** or **on**. Its owner switches it, since one watching process is enough. While it is on, it is a
 * {@link BlockingLoop} with one waiter, for whom no message ever comes. Switched off, it ends its block and closes its
 * connection. While it is off, its owner can still make it take over once.
 *
 * No error ends it. An error is reported, and a growing pause follows.
 */
export class ListWatch {
  readonly #queue: Queue;
  readonly #onPlain: () => void;
  readonly #cannot: string;
  readonly #work: Work;
  readonly #pause = new Pause(100, 5000);
  readonly #loop: BlockingLoop<never>;
  readonly #once: Task;
  /** Aborted when the watch is switched off; undefined while it is off. */
  #watching: AbortController | undefined;
  /** Whether the LIST may hold payloads. */
  #isFilled = true;

  /** `onPlain` is called if the queue is plain: the stream is gone, and this process does not create it. */
  constructor(queue: Queue, onPlain: () => void) {
    this.#queue = queue;
    this.#onPlain = onPlain;
    this.#cannot = `cannot take over what was pushed to the LIST of queue "${queue.name}"`;
    this.#work = queue.server.troubles.work();
    this.#loop = new BlockingLoop<never>(queue.server, {
      name: `the LIST watch of queue "${queue.name}"`,
      step: () => this.#step(),
      giveBack: () => Promise.resolve(),
      onLeft: () => {
        this.#isFilled = true;
        this.#loop.disconnect();
      },
      recover: (error) => this.#recover(error),
      work: this.#work,
      pause: this.#pause,
    });
    this.#once = new Task(
      async () => {
        await this.#takeOver();
        return Infinity;
      },
      this.#cannot,
      this.#work,
      // Its owner wakes it as long as the LIST holds something.
      new Pause(Infinity, Infinity),
    );
  }

  /** Switches the watch on or off. */
  switch(isOn: boolean): void {
    if (isOn === this.#isOn || this.#once.isStopped) return;
    if (isOn) {
      const watching = (this.#watching = new AbortController());
      const wait = { timeout: Infinity, signal: watching.signal };
      this.#loop.waiters.wait(1, wait).catch(() => {});
    } else {
      this.#watching?.abort();
      this.#watching = undefined;
      this.#pause.end();
      this.#work.ended();
    }
  }

  /** Takes over what is in the LIST now. Does nothing while the watch is on, which does it anyway. */
  lookOnce(): void {
    if (!this.#isOn) this.#once.wake();
  }

  /** There is nothing in the LIST: a refusal to take over what was there is over. */
  noteEmpty(): void {
    if (!this.#isOn) this.#work.ended();
  }

  /** Stops for good; resolves when nothing is under way. */
  async close(): Promise<void> {
    this.switch(false);
    await Promise.all([this.#once.close(), this.#loop.close()]);
  }

  get #isOn(): boolean {
    return this.#watching !== undefined;
  }

  async #step(): Promise<void> {
    const { client, waiters } = this.#loop;
    const { ready } = this.#queue.keys;
    if (this.#isFilled) {
      await this.#loop.prepare(() => this.#takeOver());
      this.#isFilled = false;
    } else if (client === undefined) {
      await this.#loop.open(ready);
    } else {
      const block = async () => {
        const moved = await client.block([ready], (seconds) =>
          client.redis.blmoveBuffer(ready, ready, "LEFT", "LEFT", seconds),
        );
        this.#isFilled = moved !== null;
      };
      await this.#loop.block(block, () => waiters.pendingCount === 0);
    }
  }

  async #recover(error: unknown): Promise<true> {
    // Switched off by now, so the failure does not matter.
    if (!this.#isOn) return true;
    // When memory is full Redis refuses BLMOVE as it refuses every push, so the watch misses nothing.
    if (!this.#isFilled && replyOf(error) === "OOM") this.#work.succeeded();
    else this.#work.failed(new RedisError(this.#cannot, error));
    this.#isFilled = true;
    await this.#pause.wait();
    return true;
  }

  async #takeOver(): Promise<void> {
    const { background } = this.#queue.server.connections;
    await this.#queue.clock.ready(() => this.#queue.time(background));
    // Usually there is one payload, whose push has ended the block.
    let count = 1;
    for (;;) {
      const rows = Array.from({ length: count }, () => ({
        id: createId(this.#queue.clock.nextStamp()),
      }));
      const args = { makes: this.#queue.makesStream ? 1 : 0 };
      const { areMore, isPlain } = await this.#queue.run(background, takeOver, args, rows);
      if (isPlain) return this.#onPlain();
      if (!areMore || this.#once.isStopped) return;
      count = BATCH;
    }
  }
}

/** Payloads per script. */
const BATCH = 100;
