import { settlements, traced, type SettleEvent } from "../../observe/events.ts";
import { callSignal, checkDuration, checkOptions, checkSignal } from "../../queue/checks.ts";
import type { FailedAttempt } from "../../queue/message/failed-attempt.ts";
import type { MessageHeaders } from "../../queue/message/headers.ts";
import type { MessageId } from "../../queue/message/message.ts";
import type { CallOptions } from "../../queue/options.ts";
import { failuresIn } from "../../queue/message/trailer.ts";
import type { Held } from "../group/held.ts";

/** Options of {@link Delivery.nack}. */
export interface NackOptions extends CallOptions {
  /** Milliseconds until the message comes back. Defaults to what the queue's `retry` says. */
  readonly delay?: number;
  /**
   * Why it failed: the message keeps 200 bytes of it among its {@link Delivery.failures}, and a dead letter 1,000
   * characters. Defaults to `"nack"`.
   */
  readonly reason?: string;
}

/** What a delivery needs of the queue that made it. */
export interface DeliveryHost {
  /** The queue's name. */
  readonly queue: string;
  /** The consumer group. */
  readonly group: string;
  /** Epoch milliseconds on the server's clock when its lease is over. */
  readonly deadlineOf: (held: Held) => number;
  readonly ack: (held: Held, signal?: AbortSignal) => Promise<boolean>;
  /** Lets it come back in `delay` milliseconds, or as the ladder says. */
  readonly nack: (held: Held, failure: Failure, signal?: AbortSignal) => Promise<boolean>;
  readonly reject: (held: Held, reason: string, signal?: AbortSignal) => Promise<boolean>;
  readonly extend: (held: Held, duration: number, signal?: AbortSignal) => Promise<boolean>;
}

/** Why a delivery has failed, and when the message is to come back. */
export interface Failure {
  /** What the ladder is told. */
  readonly error: unknown;
  /** What the message keeps of it, and what a dead letter says. */
  readonly reason: string;
  readonly delay?: number | undefined;
}

/** What a delivery carries. */
export interface Content<T> {
  /**
   * The id that the offer returned, or the last reschedule; the same on every delivery, in every group. Remember it
   * to do nothing twice. A message that was pushed to the ready LIST by others got one when it was taken over.
   */
  readonly id: MessageId;
  readonly payload: T;
  /** The business key, if it was offered with one. */
  readonly key: string | undefined;
  /** The headers; empty if it was offered without. */
  readonly headers: MessageHeaders;
}

/**
 * A message in the hands of a consumer, until it is settled by `ack`, `nack` or `reject`, or its lease is over.
 *
 * Each of these returns true if it was carried out, and false if the lease was lost, or the delivery was settled
 * before. If Redis's reply is lost they reject with a {@link RedisError} and do not guess: call again.
 */
export class Delivery<T = unknown> implements Content<T> {
  readonly id: MessageId;
  readonly payload: T;
  readonly key: string | undefined;
  readonly headers: MessageHeaders;
  /**
   * 1 on the first delivery; one more on each further one, whether after `nack`, a handler that threw, or a process
   * that died.
   */
  readonly attempt: number;
  readonly #held: Held;
  readonly #host: DeliveryHost;

  /** @internal */
  constructor(content: Content<T>, held: Held, host: DeliveryHost) {
    this.id = content.id;
    this.payload = content.payload;
    this.key = content.key;
    this.headers = content.headers;
    this.attempt = held.attempt;
    this.#held = held;
    this.#host = host;
  }

  /**
   * The attempts that have failed, oldest first: the last ten, those before a redrive among them. Empty if none has.
   * They are read from the message when this is asked for.
   */
  get failures(): readonly FailedAttempt[] {
    return failuresIn(this.#held.entry.trailer);
  }

  /**
   * When the lease is over if this process gives no sign of life from now on, in epoch milliseconds on the Redis
   * server's clock. Each sign moves it on: while a handler runs without limit, of a delivery that was taken by hand
   * up to what {@link extend} says.
   */
  get deadline(): number {
    return this.#host.deadlineOf(this.#held);
  }

  /**
   * Aborted when the lease is lost or over, of the message or of its partition, and in a handler when the subscription begins to close. One that was
   * taken by hand is aborted when the client, having waited for the handlers, gives it back.
   */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /**
   * Of a queue that is consumed exclusively: the fence of the partition that the message is from. It grows each time
   * another process takes the partition. Give it to whatever you write to, which can then refuse a process that was
   * paused and does not know yet that it has lost the partition. Otherwise undefined.
   */
  get fence(): number | undefined {
    return this.#held.fence;
  }

  /** Says that the message is done. */
  async ack(options?: CallOptions): Promise<boolean> {
    const signal = callSignal(options);
    return await this.#told("ack", () => this.#host.ack(this.#held, signal));
  }

  /**
   * Says that the message failed: it comes back to its group, in `delay` milliseconds or as the queue's `retry`
   * says. If it has been delivered `maxDeliveries` times, it becomes a dead letter instead.
   *
   * @throws {TypeError | RangeError} if an option is not legal.
   */
  async nack(options: NackOptions = {}): Promise<boolean> {
    checkOptions("nack option", options, ["delay", "reason", "signal"]);
    const { delay, reason = "nack", signal } = options;
    checkSignal(signal);
    if (delay !== undefined) checkDuration("delay", delay);
    checkReason(reason);
    const failure = { delay, reason, error: new Error(reason) };
    return await this.#told("nack", () => this.#host.nack(this.#held, failure, signal));
  }

  /**
   * Makes the message a dead letter at once, with `reason`, of which 1,000 characters are kept.
   *
   * @throws {TypeError} if `reason` is no string.
   */
  async reject(reason = "rejected", options?: CallOptions): Promise<boolean> {
    checkReason(reason);
    const signal = callSignal(options);
    return await this.#told("reject", () => this.#host.reject(this.#held, reason, signal));
  }

  /**
   * Makes the lease last `duration` milliseconds from now, for a delivery that was taken by hand. However long that
   * is, the lease is lost if this process gives no sign of life for a visibility timeout. In a handler it changes
   * nothing, and tells whether the lease is still ours.
   *
   * @throws {TypeError | RangeError} if `duration` is not legal.
   */
  async extend(duration: number, options?: CallOptions): Promise<boolean> {
    checkDuration("duration", duration);
    const signal = callSignal(options);
    return await this.#told("extend", () => this.#host.extend(this.#held, duration, signal));
  }

  /** Tells who listens. */
  #told(operation: SettleEvent["operation"], run: () => Promise<boolean>): Promise<boolean> {
    if (!settlements.hasSubscribers) return run();
    const { queue, group } = this.#host;
    const { id, key, headers, attempt } = this;
    const { readyAt, takenAt } = this.#held;
    const message = { id, key, headers, attempt, readyAt, takenAt };
    return traced(settlements, { queue, group, operation, message }, run);
  }
}

function checkReason(reason: unknown): asserts reason is string {
  if (typeof reason !== "string") {
    throw new TypeError(`reason must be a string, got ${typeof reason}`);
  }
}
