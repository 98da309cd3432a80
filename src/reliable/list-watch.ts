import { RedisError } from "../errors.ts";
import { replyOf } from "../failure.ts";
import { takeOver } from "../lua/reliable/take-over.ts";
import { createId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { BlockingClient } from "../redis/blocking-client.ts";
import type { Work } from "../redis/troubles.ts";
import { Unblocking } from "../redis/unblocking.ts";
import { Pause } from "../time/pause.ts";

/**
 * Watches the ready LIST of a reliable queue, and moves its payloads to the stream.
 *
 * Programs that do not know that the queue is reliable push to the LIST: Java processes, or older releases. The watch
 * first takes over what the LIST holds, then blocks until somebody pushes. It blocks by a BLMOVE from the head of the
 * LIST to the head of the same LIST, which changes nothing. So nothing is lost, whenever the process or the
 * connection ends.
 *
 * The watch is **off** or **on**. Its owner switches it, since one watching process is enough. Switched off, it ends
 * its block and closes its connection. While it is off, its owner can still make it take over once.
 *
 * No error ends it. An error is reported, and a growing pause follows.
 */
export class ListWatch {
  readonly #queue: Queue;
  readonly #work: Work;
  readonly #unblocking: Unblocking;
  readonly #onPlain: () => void;
  readonly #pause = new Pause(100, 5000);
  #isOn = false;
  #isClosed = false;
  #client: BlockingClient | undefined;
  #isBlocking = false;
  /** Resolves when the watch is off and nothing is under way. */
  #watching: Promise<void> | undefined;
  /** The single take-over that is under way while the watch is off. */
  #takingOver: Promise<void> | undefined;

  /** `onPlain` is called if the queue is plain: the stream is gone, and this process does not create it. */
  constructor(queue: Queue, onPlain: () => void) {
    this.#queue = queue;
    const { troubles } = queue.server;
    this.#work = troubles.work();
    this.#unblocking = new Unblocking(`the LIST watch of queue "${queue.name}"`, troubles.work());
    this.#onPlain = onPlain;
  }

  /** Switches the watch on or off. */
  switch(isOn: boolean): void {
    if (isOn === this.#isOn || this.#isClosed) return;
    this.#isOn = isOn;
    if (isOn) this.#start();
    else this.#stop();
  }

  /** Takes over what is in the LIST now. Does nothing while the watch is on, which does it anyway. */
  lookOnce(): void {
    if (this.#isOn || this.#isClosed) return;
    this.#takingOver ??= this.#takeOver()
      .then(() => this.#work.succeeded())
      .catch((error: unknown) => {
        // The owner calls again as long as the LIST holds something.
        this.#fail(error);
        this.#work.stopped();
      })
      .finally(() => (this.#takingOver = undefined));
  }

  /** There is nothing in the LIST: a refusal to take over what was there is over. */
  noteEmpty(): void {
    if (!this.#isOn) this.#work.ended();
  }

  /** Stops for good; resolves when nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isOn = false;
    this.#stop();
    await Promise.all([this.#watching, this.#takingOver]);
    await this.#unblocking.close();
  }

  #start(): void {
    // A watch that was just switched off and has not ended yet goes on.
    this.#watching ??= this.#watch();
  }

  #stop(): void {
    this.#pause.end();
    this.#work.ended();
    this.#unblocking.start(
      () => this.#client?.unblock(),
      () => this.#isBlocking && !this.#isOn,
    );
  }

  async #watch(): Promise<void> {
    // Whether the LIST may hold payloads.
    let isFilled = true;
    while (this.#isOn) {
      try {
        if (isFilled) await this.#takeOver();
        isFilled = false;
        isFilled = await this.#block();
        this.#work.succeeded();
        this.#pause.reset();
      } catch (error) {
        // Switched off meanwhile, so the failure does not matter.
        if (!this.#isOn) break;
        // When memory is full Redis refuses BLMOVE as it refuses every push, so the watch misses nothing.
        if (!isFilled && replyOf(error) === "OOM") this.#work.succeeded();
        else this.#fail(error);
        isFilled = true;
        await this.#pause.wait();
      }
    }
    this.#client?.disconnect();
    this.#client = undefined;
    // In the same turn as the loop's end, so that the next switch to on starts a new loop.
    this.#watching = undefined;
  }

  /** Blocks until the LIST holds something, for two seconds at most; returns whether it does. */
  async #block(): Promise<boolean> {
    if (this.#client === undefined || this.#client.isLost) {
      this.#client = await BlockingClient.open(
        this.#queue.server.connections,
        this.#queue.keys.ready,
      );
    }
    if (!this.#isOn) return false;
    const { ready } = this.#queue.keys;
    const { redis } = this.#client;
    this.#isBlocking = true;
    try {
      const blocked = redis.blmoveBuffer(ready, ready, "LEFT", "LEFT", BLOCK);
      return (await this.#client.watched(BLOCK, blocked)) !== null;
    } finally {
      this.#isBlocking = false;
    }
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
      if (!areMore || this.#isClosed) return;
      count = BATCH;
    }
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return;
    const { name } = this.#queue;
    this.#work.failed(
      new RedisError(`cannot take over what was pushed to the LIST of queue "${name}"`, error),
    );
  }
}

/** How long one BLMOVE blocks at most, in seconds. A connection that died silently is found soon after. */
const BLOCK = 2;

/** Payloads per script. */
const BATCH = 100;
