import { ClosedError, RedisError } from "../errors.ts";
import { UnansweredError } from "../failure.ts";
import { onAbort } from "../time/abort.ts";
import { DeadlineTimer } from "../time/deadline-timer.ts";
import { networkTime, queueTime } from "../time/runtime.ts";

/** The limits of a wait. */
export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; Infinity waits for ever. */
  readonly timeout: number;
}

/** The owner of {@link Waiters}, which takes messages for them. */
export interface WaitersOwner {
  /** Whether Redis can be asked now. */
  readonly isConnected: () => boolean;
  /** Called when a waiter has come, or has left without a message. */
  readonly onChange: () => void;
  /** Adds to an error why Redis cannot be reached, if that is known. */
  readonly explain?: (error: unknown) => unknown;
}

/** A call that waits. */
class Waiter<Message> {
  /** The largest number of messages that it takes. */
  readonly max: number;
  /** Whether a reply that might have carried a message for it was lost. */
  hasLostReply = false;
  /** Ends the wait in time; most waits have no limit. */
  expiry: DeadlineTimer | undefined;
  /** Stops listening to the signal. */
  unlisten: (() => void) | undefined;
  readonly #resolve: (messages: readonly Message[]) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    max: number,
    resolve: (messages: readonly Message[]) => void,
    reject: (error: unknown) => void,
  ) {
    this.max = max;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  resolve(messages: readonly Message[]): void {
    this.#finish();
    this.#resolve(messages);
  }

  reject(error: unknown): void {
    this.#finish();
    this.#reject(error);
  }

  #finish(): void {
    this.expiry?.clear();
    this.unlisten?.();
  }
}

/**
 * The calls of one process that wait for messages of a queue. They are served in the order in which they came. Each
 * gets all its messages at once.
 *
 * A waiter is in one of three states:
 *
 * - *pending*: its time is not over.
 * - *expired*: its time is over, but a reply may be under way, and no other waiter was pending. If the reply carries
 *   a message, this waiter gets it. Otherwise the message would have to be given back, and the next caller
 *   might get a later message first. If the reply carries no message, or no reply is under way, the waiter gets none.
 * - *unserved*: its time was over before there was a connection. It gets one pop as soon as there is a connection.
 *
 * Expired and unserved waiters stay for a second at most. An unserved one then rejects, since whether Redis has a
 * message is not known. Its error says that nothing was sent for it, unless a reply was lost while it waited.
 */
export class Waiters<Message> {
  readonly #queue: string;
  readonly #owner: WaitersOwner;
  readonly #pending = new Set<Waiter<Message>>();
  readonly #expired = new Set<Waiter<Message>>();
  readonly #unserved = new Set<Waiter<Message>>();
  #isClosed = false;

  /** `queue` names the queue in errors, such as `queue "orders"`. */
  constructor(queue: string, owner: WaitersOwner) {
    this.#queue = queue;
    this.#owner = owner;
  }

  /**
   * Waits for up to `max` messages; resolves as soon as there is one. Resolves to none after `timeout`, or up to a
   * second later if a reply is under way.
   *
   * @throws {ClosedError} if the waiters are closed before or during the wait.
   * @throws {RedisError} if Redis could not be asked before the time was over.
   * @throws the signal's reason, if it is aborted.
   */
  wait(max: number, { signal, timeout }: WaitOptions): Promise<readonly Message[]> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new ClosedError(this.#queue);
      signal?.throwIfAborted();
      const waiter = new Waiter(max, resolve, reject);
      if (timeout !== Infinity) {
        waiter.expiry = new DeadlineTimer(() => this.#expire(waiter));
        waiter.expiry.reset(queueTime.now() + timeout);
      }
      if (signal !== undefined) {
        waiter.unlisten = onAbort(signal, () => this.#leave(waiter, signal.reason));
      }
      this.#pending.add(waiter);
      this.#owner.onChange();
    });
  }

  /** Whether any waiter is pending or unserved. For an expired waiter, Redis is not asked again. */
  get areThere(): boolean {
    return this.#pending.size + this.#unserved.size > 0;
  }

  /** How many are pending. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** How many are unserved. */
  get unservedCount(): number {
    return this.#unserved.size;
  }

  /** The `max` of each pending waiter, in the order in which they came. */
  get wanted(): number[] {
    return Array.from(this.#pending, ({ max }) => max);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Makes the unserved waiters expired: a pop is about to be sent for them. Returns how many messages they take at
   * most.
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

  /** Gives messages to the waiters, while another reply is under way. Returns the messages that no waiter takes. */
  give(messages: readonly Message[]): readonly Message[] {
    let given = 0;
    // The expired ones first: they will leave without a message, while the others stay.
    for (const waiter of [...this.#expired, ...this.#pending]) {
      if (given === messages.length) break;
      this.#expired.delete(waiter);
      this.#pending.delete(waiter);
      const end = Math.min(given + waiter.max, messages.length);
      waiter.resolve(messages.slice(given, end));
      given = end;
    }
    return messages.slice(given);
  }

  /**
   * Gives messages to the waiters, when no other reply is under way, and dismisses the expired waiters that get none.
   * Returns the messages that no waiter takes.
   */
  giveLast(messages: readonly Message[]): readonly Message[] {
    const left = this.give(messages);
    this.dismissExpired();
    return left;
  }

  /** Resolves the expired waiters to no message, since no reply is under way. */
  dismissExpired(): void {
    for (const waiter of this.#expired) waiter.resolve([]);
    this.#expired.clear();
  }

  /** A reply was lost that may have carried messages. */
  loseReply(): void {
    for (const waiters of [this.#pending, this.#expired, this.#unserved]) {
      for (const waiter of waiters) waiter.hasLostReply = true;
    }
  }

  /** Rejects the unserved waiters: Redis could not be asked for them. */
  failUnserved(reason: unknown): void {
    for (const waiter of this.#unserved) waiter.reject(this.#unservedError(waiter, reason));
    this.#unserved.clear();
  }

  /** Rejects all waiters. */
  failAll(error: unknown): void {
    for (const waiters of [this.#unserved, this.#expired, this.#pending]) {
      for (const waiter of waiters) waiter.reject(error);
      waiters.clear();
    }
  }

  /** Rejects all waiters, and later ones, with a {@link ClosedError}. */
  close(): void {
    this.#isClosed = true;
    this.failAll(new ClosedError(this.#queue));
    this.#owner.onChange();
  }

  #leave(waiter: Waiter<Message>, reason: unknown): void {
    for (const waiters of [this.#pending, this.#expired, this.#unserved]) waiters.delete(waiter);
    waiter.reject(reason);
    this.#owner.onChange();
  }

  #expire(waiter: Waiter<Message>): void {
    this.#pending.delete(waiter);
    const isConnected = this.#owner.isConnected();
    if (isConnected && this.#pending.size > 0) {
      waiter.resolve([]);
      return;
    }
    (isConnected ? this.#expired : this.#unserved).add(waiter);
    networkTime.setTimeout(() => this.#dismiss(waiter), LAST_REPLY).unref();
    this.#owner.onChange();
  }

  /** Removes a waiter whose last reply did not come. */
  #dismiss(waiter: Waiter<Message>): void {
    if (this.#expired.delete(waiter)) waiter.resolve([]);
    if (!this.#unserved.delete(waiter)) return;
    const late = new UnansweredError("Redis could not be reached in time", false);
    waiter.reject(this.#unservedError(waiter, this.#owner.explain?.(late) ?? late));
  }

  #unservedError({ hasLostReply }: Waiter<Message>, reason: unknown): RedisError {
    const doing = `cannot take from ${this.#queue}`;
    if (hasLostReply) return new RedisError(doing, reason, "REDIS", "unknown");
    const nothing = `${doing} (nothing was sent, so nothing was taken)`;
    return new RedisError(nothing, reason, "REDIS", "none");
  }
}

/** Milliseconds that a reply may take after the wait is over. */
const LAST_REPLY = 1000;
