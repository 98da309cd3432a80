import { setMaxListeners } from "node:events";
import { ClosedError, RedisError } from "../../errors.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";

/** What ends a wait, apart from a message. */
export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; Infinity waits for ever. */
  readonly timeout: number;
}

/** Who takes messages for those who wait. */
export interface WaitersOwner {
  /** Whether Redis can be asked at present. */
  readonly isConnected: () => boolean;
  /** Is called when somebody has started to wait, or has left without a message. */
  readonly onChange: () => void;
}

interface Waiter<Message> {
  /** How many messages it takes at most. */
  readonly max: number;
  readonly resolve: (messages: readonly Message[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The calls of one process that wait for messages of a queue. They are served first come, first
 * served, and each gets all its messages at once.
 *
 * A waiter is in one of three places:
 *
 * - *waiting*: its time is not over.
 * - *expired*: its time is over, but a reply may be under way, and nobody else waited for it. If the
 *   reply brings a message, this waiter gets it. Otherwise the message would have to go back, and
 *   whoever asks next might be given a later one first. If the reply brings none, or there was none to
 *   come, the waiter gets none.
 * - *unserved*: its time was over before there was a connection. It gets one pop as soon as there is.
 *
 * Expired and unserved waiters stay for a second at most. An unserved one then rejects: that Redis
 * has no message would be a guess.
 */
export class Waiters<Message> {
  readonly #queue: string;
  readonly #owner: WaitersOwner;
  readonly #waiting = new Set<Waiter<Message>>();
  readonly #expired = new Set<Waiter<Message>>();
  readonly #unserved = new Set<Waiter<Message>>();
  #isClosed = false;

  /** `queue` is what errors call it. */
  constructor(queue: string, owner: WaitersOwner) {
    this.#queue = queue;
    this.#owner = owner;
  }

  /**
   * Waits for messages, `max` at most; resolves as soon as there is one. At the end of `timeout`, or
   * up to a second later if a reply is under way, resolves to none.
   *
   * @throws {ClosedError} if the waiters are closed, before or meanwhile.
   * @throws {RedisError} if Redis could not be asked before the time was over.
   * @throws the signal's reason, if it is aborted.
   */
  wait(max: number, { signal, timeout }: WaitOptions): Promise<readonly Message[]> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new ClosedError("the client");
      signal?.throwIfAborted();
      // Many may wait with one signal; Node takes more than ten listeners for a leak.
      if (signal !== undefined) setMaxListeners(0, signal);
      const expiry = new DeadlineTimer(() => this.#expire(waiter));
      const onAbort = () => this.#leave(waiter, signal?.reason);
      const finish = () => {
        expiry.clear();
        signal?.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter<Message> = {
        max,
        resolve: (messages) => {
          finish();
          resolve(messages);
        },
        reject: (error) => {
          finish();
          // A signal may be aborted with any reason.
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors
          reject(error);
        },
      };
      expiry.reset(performance.now() + timeout);
      signal?.addEventListener("abort", onAbort);
      this.#waiting.add(waiter);
      this.#owner.onChange();
    });
  }

  /** Whether anybody is waiting or unserved. For an expired waiter nothing more is asked. */
  get areThere(): boolean {
    return this.#waiting.size + this.#unserved.size > 0;
  }

  /** How many are waiting. */
  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** How many are unserved. */
  get unservedCount(): number {
    return this.#unserved.size;
  }

  /** How many messages each of those who are waiting takes at most, in the order in which they came. */
  get wanted(): number[] {
    return Array.from(this.#waiting, ({ max }) => max);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Makes the unserved waiters expired ones: a pop is about to be sent for them. Returns how many
   * messages they take at most.
   */
  expireUnserved(): number {
    let wanted = 0;
    for (const waiter of this.#unserved) {
      wanted += waiter.max;
      this.#expired.add(waiter);
    }
    this.#unserved.clear();
    return wanted;
  }

  /** Gives messages while another reply is under way. Returns those that nobody takes. */
  give(messages: readonly Message[]): readonly Message[] {
    let given = 0;
    // The expired first: they get nothing after this, and the others do.
    for (const waiter of [...this.#expired, ...this.#waiting]) {
      if (given === messages.length) break;
      this.#expired.delete(waiter);
      this.#waiting.delete(waiter);
      const end = Math.min(given + waiter.max, messages.length);
      waiter.resolve(messages.slice(given, end));
      given = end;
    }
    return messages.slice(given);
  }

  /**
   * Gives messages when no other reply is under way, and dismisses the expired waiters who get none.
   * Returns the messages that nobody takes.
   */
  giveLast(messages: readonly Message[]): readonly Message[] {
    const left = this.give(messages);
    this.dismissExpired();
    return left;
  }

  /** No reply is under way any more: the expired waiters get no message. */
  dismissExpired(): void {
    for (const waiter of this.#expired) waiter.resolve([]);
    this.#expired.clear();
  }

  /** Rejects for those who are unserved. */
  failUnserved(error: unknown): void {
    for (const waiter of this.#unserved) waiter.reject(error);
    this.#unserved.clear();
  }

  /** Rejects for everybody. */
  failAll(error: unknown): void {
    this.failUnserved(error);
    for (const waiters of [this.#expired, this.#waiting]) {
      for (const waiter of waiters) waiter.reject(error);
      waiters.clear();
    }
  }

  /** Rejects for everybody, and for whoever comes later, with a {@link ClosedError}. */
  close(): void {
    this.#isClosed = true;
    this.failAll(new ClosedError("the client"));
    this.#owner.onChange();
  }

  #leave(waiter: Waiter<Message>, reason: unknown): void {
    for (const waiters of [this.#waiting, this.#expired, this.#unserved]) waiters.delete(waiter);
    waiter.reject(reason);
    this.#owner.onChange();
  }

  #expire(waiter: Waiter<Message>): void {
    this.#waiting.delete(waiter);
    const isConnected = this.#owner.isConnected();
    if (isConnected && this.#waiting.size > 0) {
      waiter.resolve([]);
      return;
    }
    (isConnected ? this.#expired : this.#unserved).add(waiter);
    setTimeout(() => this.#dismiss(waiter), LAST_REPLY).unref();
    this.#owner.onChange();
  }

  /** The last reply did not come. */
  #dismiss(waiter: Waiter<Message>): void {
    if (this.#expired.delete(waiter)) waiter.resolve([]);
    if (!this.#unserved.delete(waiter)) return;
    const silence = new Error("Redis did not reply in time");
    waiter.reject(new RedisError(`cannot take from ${this.#queue}`, silence));
  }
}

/** Milliseconds that a reply may take after a wait is over. */
const LAST_REPLY = 1000;
