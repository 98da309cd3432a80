import { setPaused } from "../lua/queue/set-paused.ts";
import type { Call } from "./call.ts";
import type { Listener } from "../redis/subscriber.ts";
import { Task } from "../run/task.ts";
import { spread } from "../time/spread.ts";
import type { Queue } from "./queue.ts";

/** The pause, as the tasks that take or move messages see it. */
export interface PauseState {
  /** Whether the queue is paused, as far as this process knows; undefined until it has asked. */
  readonly isPaused: boolean | undefined;
  /** Resolves once {@link isPaused} is known. Rejects with ioredis's errors. */
  known(): Promise<void>;
  /** Calls `listener` whenever {@link isPaused} changes. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
}

/**
 * Whether a queue is paused, as stored in Redis and as far as this process knows.
 *
 * Redis is not asked for each message, but once at first, and then whenever the answer may have changed: when the
 * queue's channel is subscribed (again), on a `0` there, which means "look now", and every 30 s or so as a backstop.
 * If this client has a transfer task, the task's sweeps reply with the pause, and come on the same occasions. If it
 * has none, the watch subscribes and asks itself, from the first take on.
 */
export class PauseWatch implements PauseState, Listener {
  readonly #queue: Queue;
  readonly #listeners = new Set<() => void>();
  readonly #looks: Task;
  #isPaused: boolean | undefined;
  /** The first question to Redis, while it is under way. */
  #asking: Promise<void> | undefined;
  /** Whether {@link isPaused} is kept up to date, and by what. */
  #watching: "nobody" | "watch" | "sweeps" = "nobody";

  constructor(queue: Queue) {
    this.#queue = queue;
    this.#looks = new Task(
      async () => {
        await this.#ask();
        return spread(INTERVAL);
      },
      `cannot ask whether queue "${queue.name}" is paused`,
      queue.server.troubles.work(),
      undefined,
      () => true,
    );
  }

  get isPaused(): boolean | undefined {
    return this.#isPaused;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Notes what Redis has replied. */
  note(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    for (const listener of this.#listeners) listener();
  }

  async known(): Promise<void> {
    if (this.#watching === "nobody" && !this.#looks.isStopped) this.#watch();
    if (this.#isPaused !== undefined) return;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    await this.#asking;
  }

  /** From now on the sweeps of a transfer task keep {@link isPaused} up to date, by {@link note}. */
  leaveToSweeps(): void {
    this.#watching = "sweeps";
    void this.#looks.close();
  }

  async pause(call?: Call, reason = ""): Promise<void> {
    await this.#set(true, call, reason);
  }

  /**
   * Pauses the queue before anything else is moved or taken.
   *
   * Rejects with ioredis's errors.
   */
  async pauseFirst(reason: string): Promise<void> {
    const { channel } = this.#queue.keys;
    const { background } = this.#queue.server.connections;
    await this.#queue.run(background, setPaused, { channel, isPaused: 1, reason });
    this.note(true);
  }

  async resume(call?: Call): Promise<void> {
    await this.#set(false, call);
  }

  /** Asks Redis whether the queue is paused. */
  async ask(call?: Call): Promise<boolean> {
    return await this.#queue.call("look at", (redis) => this.#queue.isPaused(redis), call);
  }

  onSubscribed(): void {
    this.#looks.wake();
  }

  onMessage(message: string): void {
    if (message === "0") this.#looks.wake();
  }

  /** Stops watching. */
  close(): void {
    void this.#looks.close();
    if (this.#watching === "watch")
      this.#queue.server.subscriber.unlisten(this.#queue.keys.channel, this);
  }

  async #set(isPaused: boolean, call?: Call, reason = ""): Promise<void> {
    const { channel } = this.#queue.keys;
    const args = { channel, isPaused: isPaused ? 1 : 0, reason };
    await this.#queue.change(isPaused ? "pause" : "resume", setPaused, args, call);
    // Without anything that hears of changes, the state would become outdated.
    if (this.#watching !== "nobody") this.note(isPaused);
  }

  async #ask(): Promise<void> {
    const { background } = this.#queue.server.connections;
    // Where no sweep tells of partitions and of the stream, this does. Whoever may not ask, or finds a foreign key, takes
    // nevertheless.
    const asking = Promise.allSettled([
      this.#queue.askForPartitions(background),
      this.#queue.askForStream(background),
    ]);
    // Replies come in the order of the questions, so the last one to be noted is the latest.
    this.note(await this.#queue.isPaused(background));
    await asking;
  }

  #watch(): void {
    this.#watching = "watch";
    this.#looks.start(spread(INTERVAL));
    this.#queue.server.subscriber.listen(this.#queue.keys.channel, this);
  }
}

/** Milliseconds between two questions without an occasion, on average. */
const INTERVAL = 30_000;
