import { setTimeout as sleep } from "node:timers/promises";
import { RedisError } from "../errors.ts";
import { replyOf } from "../failure.ts";
import { takeOver } from "../lua/reliable/take-over.ts";
import { run } from "../lua/script.ts";
import { createId } from "../queue/message/message.ts";
import type { Queue } from "../queue/queue.ts";
import { BlockingClient } from "../redis/blocking-client.ts";
import type { Connections } from "../redis/connections.ts";
import type { Troubles, Work } from "../redis/troubles.ts";
import { Pause } from "../time/pause.ts";
import type { ServerClock } from "../time/server-clock.ts";

/**
 * Watches the ready LIST of a reliable queue, and moves what lies there to the stream.
 *
 * Who does not know that the queue is reliable pushes to the LIST: a Java process, or an older version. The watch
 * takes over what is there, then blocks until somebody pushes. It blocks by a BLMOVE from the head of the LIST to
 * the head of the same LIST, which changes nothing: so nothing is lost, whenever the process or the connection
 * ends.
 *
 * It is **off** at first. Its owner switches it **on** and off: one process that watches is enough. Switched
 * off, it ends its block and its connection. A process that is off can still be told to take over once.
 *
 * No error ends it. It is told to the client's troubles, and tried again after a growing pause.
 */
export class ListWatch {
  readonly #queue: Queue;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #work: Work;
  readonly #onPlain: () => void;
  readonly #pause = new Pause(100, 5000);
  #isOn = false;
  #isClosed = false;
  #client: BlockingClient | undefined;
  #isBlocking = false;
  /** All that happens while it is on, until nothing is under way any more. */
  #watching: Promise<void> | undefined;
  #unblocking: Promise<void> | undefined;
  /** A single taking over, while it is off. */
  #taking: Promise<void> | undefined;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly clock: ServerClock;
      readonly troubles: Troubles;
      /** The stream has gone, and this process makes none: the LIST is for those who take from it. */
      readonly onPlain: () => void;
    },
  ) {
    this.#queue = queue;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#work = shared.troubles.work();
    this.#onPlain = shared.onPlain;
  }

  /** Switches it on or off. */
  switch(isOn: boolean): void {
    if (isOn === this.#isOn || this.#isClosed) return;
    this.#isOn = isOn;
    if (isOn) this.#start();
    else this.#stop();
  }

  /** Takes over what lies in the LIST now. While it is on it does so anyway. */
  lookOnce(): void {
    if (this.#isOn || this.#isClosed) return;
    this.#taking ??= this.#takeOver()
      .then(() => this.#work.succeeded())
      .catch((error: unknown) => {
        // The owner asks again as long as something is there.
        this.#fail(error);
        this.#work.stopped();
      })
      .finally(() => (this.#taking = undefined));
  }

  /** There is nothing in the LIST: a refusal to take over what was there is over. */
  noteEmpty(): void {
    if (!this.#isOn) this.#work.ended();
  }

  /** Stops; resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isOn = false;
    this.#stop();
    await Promise.all([this.#watching, this.#taking]);
    await this.#unblocking;
  }

  #start(): void {
    // One that was switched off a moment ago goes on.
    this.#watching ??= this.#watch();
  }

  #stop(): void {
    this.#pause.end();
    this.#work.ended();
    if (this.#isBlocking) this.#unblocking ??= this.#unblock();
  }

  async #watch(): Promise<void> {
    let isFilled = true;
    while (this.#isOn) {
      try {
        if (isFilled) await this.#takeOver();
        isFilled = false;
        isFilled = await this.#block();
        this.#work.succeeded();
        this.#pause.reset();
      } catch (error) {
        // A failure to go on is none once nobody needs it.
        if (!this.#isOn) break;
        // A Redis whose memory is full refuses the block as it refuses a push: nothing is wrong with the watch.
        if (!isFilled && replyOf(error) === "OOM") this.#work.succeeded();
        else this.#fail(error);
        isFilled = true;
        await this.#pause.wait();
      }
    }
    this.#client?.disconnect();
    this.#client = undefined;
    // In the same turn, so that whoever switches it on from now on starts the next.
    this.#watching = undefined;
  }

  /** Blocks until there is something in the LIST, for two seconds at most; returns whether there is. */
  async #block(): Promise<boolean> {
    if (this.#client === undefined || this.#client.isLost) {
      this.#client = await BlockingClient.open(this.#connections, this.#queue.keys.ready);
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

  async #unblock(): Promise<void> {
    try {
      while (this.#isBlocking && !this.#isOn) {
        // The block may not have reached Redis yet, so look again.
        await this.#client?.unblock();
        await sleep(UNBLOCK_AGAIN);
      }
    } catch {
      // The block ends by itself, two seconds later.
    } finally {
      this.#unblocking = undefined;
    }
  }

  async #takeOver(): Promise<void> {
    const { background } = this.#connections;
    await this.#clock.ready(() => this.#queue.time(background));
    // Mostly it is the one message that has ended the block.
    let count = 1;
    for (;;) {
      const rows = Array.from({ length: count }, () => ({ id: createId(this.#clock.nextStamp()) }));
      const args = { makes: this.#queue.makesStream ? 1 : 0 };
      const { areMore, isPlain } = await run(background, takeOver, this.#queue.keys, args, rows);
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

/** Seconds that one BLMOVE blocks at most: a connection that died silently is found soon after. */
const BLOCK = 2;

/** Payloads per script. */
const BATCH = 100;

/** Milliseconds between two attempts to end a block. */
const UNBLOCK_AGAIN = 5;
