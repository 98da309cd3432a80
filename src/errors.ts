/**
 * Delayline's errors. Every one extends {@link DelaylineError} and carries a stable `code`.
 *
 * No error reveals a payload or a password, however it is printed: through `message`, `cause`, `util.inspect` or
 * `JSON.stringify`. ioredis's errors carry the arguments of the failed command, including the payload, so they are
 * never passed on unchanged.
 */
import { isBranded } from "./codecs/brand.ts";
import { causeOf } from "./cause.ts";
import { hadNoEffect, isGivenUp, messageOf, replyOf, UnansweredError } from "./failure.ts";
import { fieldOf, isError, textField, textOfThrown } from "./values/thrown.ts";

/** The stable codes of Delayline's errors. */
export type ErrorCode =
  | "CLOSED"
  | "ENCODE"
  | "DECODE"
  | "PAYLOAD_TOO_LARGE"
  | "REDIS"
  | "OFFER"
  | "OFFER_MANY"
  | "QUARANTINED"
  | "HANDLER"
  | "LEFT_RUNNING"
  | "WRONG_HANDLE"
  | "SCHEDULE"
  | "REVOKED"
  | "TIME_LIMIT";

/** Any of Delayline's errors: in a `switch (error.code)` TypeScript narrows it to the class with that code. */
export type AnyDelaylineError =
  | ClosedError
  | EncodeError
  | DecodeError
  | PayloadTooLargeError
  | (RedisError & { readonly code: "REDIS" })
  | OfferError
  | OfferManyError
  | QuarantineError
  | HandlerError
  | LeftRunningError
  | WrongHandleError
  | ScheduleError
  | RevokedError
  | TimeLimitError;

/** The base class of Delayline's errors. */
export class DelaylineError extends Error {
  // A literal, here and below: a bundler may rename the classes.
  static override readonly name: string = "DelaylineError";

  /**
   * Only a type: after `error instanceof DelaylineError`, `error.code` narrows the error to the class with that code.
   * From TypeScript 5.3.
   */
  declare static readonly [Symbol.hasInstance]: <Class>(
    this: Class,
    value: unknown,
  ) => value is typeof DelaylineError extends Class
    ? AnyDelaylineError
    : Class extends abstract new (...args: never) => infer Instance
      ? Instance
      : never;

  /** A stable name for programs to compare. A code never changes; a message may be reworded. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/** The client, its queue or the subscription was closed before or during the call. */
export class ClosedError extends DelaylineError {
  static override readonly name: string = "ClosedError";
  declare readonly code: "CLOSED";

  constructor(what: string) {
    super("CLOSED", `${what} is closed`);
  }
}

/**
 * The codec could not encode a payload. Nothing was sent. `cause` is the codec's error.
 *
 * The message names the path of a value that contains itself, and the kind of value that a built-in codec refused, but
 * never the value.
 */
export class EncodeError extends DelaylineError {
  static override readonly name: string = "EncodeError";
  declare readonly code: "ENCODE";

  constructor(queue: string, codec: string, cause: unknown, cycle?: string) {
    const why = isBranded(cause, "UnwritableError") ? textField(cause, "message") : cycle;
    const what = `cannot encode a payload for queue "${queue}" with codec "${codec}"`;
    super("ENCODE", why === undefined ? what : `${what}: ${why}`, { cause });
  }
}

/**
 * The codec could not decode a message.
 *
 * Nothing is lost: {@link DecodeError.bytes} holds the payload. If the message was taken, the payload is also in the
 * queue's quarantine, or in a dead letter of a reliable queue. If it could not be put into the quarantine, the message
 * of the error says so, and only `bytes` holds it. If it was only read (`get`, `peek`), it stays where it is.
 *
 * Built-in codecs report what is wrong. From a custom codec's error only the name is kept, since decoders quote their
 * input.
 */
export class DecodeError extends DelaylineError {
  static override readonly name: string = "DecodeError";
  declare readonly code: "DECODE";

  readonly #bytes: Buffer;

  constructor(queue: string, codec: string, bytes: Buffer, cause: unknown, isKept = true) {
    const kind = isError(cause) ? (textField(cause, "name") ?? "Error") : typeof cause;
    const isOurs = isBranded(cause, "UnreadableError");
    const why = isOurs ? `: ${textField(cause, "message")}` : ` (${kind})`;
    super(
      "DECODE",
      `cannot decode a message of ${bytes.length} bytes from queue "${queue}" with codec "${codec}"${why}${isKept ? "" : NOT_KEPT}`,
    );
    this.#bytes = bytes;
  }

  /** The raw payload. */
  // A getter of a private field, so printing the error does not print it.
  get bytes(): Buffer {
    return this.#bytes;
  }
}

const NOT_KEPT =
  "; the message could not be put into the quarantine, so only `bytes` of this error holds it";

/** A payload is larger than `maxPayloadBytes`. Nothing was sent. */
export class PayloadTooLargeError extends DelaylineError {
  static override readonly name: string = "PayloadTooLargeError";
  declare readonly code: "PAYLOAD_TOO_LARGE";

  constructor(
    queue: string,
    /** The encoded size in bytes. */
    readonly size: number,
    /** The queue's option of that name. */
    readonly maxPayloadBytes: number,
  ) {
    super(
      "PAYLOAD_TOO_LARGE",
      `a payload for queue "${queue}" has ${size} bytes, but maxPayloadBytes is ${maxPayloadBytes}`,
    );
  }
}

/**
 * A Redis command failed: the server refused it, or its reply never came. If the cause is known, the message ends with a remedy.
 */
export class RedisError extends DelaylineError {
  static override readonly name: string = "RedisError";
  declare readonly code: "REDIS" | "OFFER";

  /**
   * The first word of the server's refusal (`WRONGTYPE`, `OOM`, `READONLY`, `NOPERM`, ...); undefined if the server
   * did not reply (a lost connection, a timeout). `ERR` has many meanings; on Redis 7.0 it also stands for a missing
   * permission inside a script.
   */
  readonly reply: string | undefined;

  /**
   * The effect that the call may have had in Redis. `"none"`: Redis refused it, or it was never sent; an offer is not stored.
   * `"unknown"`: it was sent, but no reply came, or Redis refused it half-way, or refused a second copy that was sent after a lost
   * connection; it may be done in part or in full.
   */
  readonly effect: "none" | "unknown";

  constructor(
    doing: string,
    error: unknown,
    code: "REDIS" | "OFFER" = "REDIS",
    effect: RedisError["effect"] = hadNoEffect(error) ? "none" : "unknown",
  ) {
    const copy = withoutArguments(error);
    // The reason of an abort is the caller's own.
    const cause = (isError(error) && error instanceof UnansweredError && error.cause) || copy;
    super(code, `${doing}: ${withWayOut(copy)}`, { cause });
    this.reply = replyOf(copy);
    this.effect = effect;
  }
}

/** Redis refused an offer, or its reply was lost. `effect` says whether the message may be in Redis nevertheless. */
export class OfferError extends RedisError {
  static override readonly name: string = "OfferError";
  declare readonly code: "OFFER";

  constructor(doing: string, error: unknown, effect?: RedisError["effect"]) {
    super(doing, error, "OFFER", effect);
  }
}

/** Redis refused some of the messages of an `offerMany`, or their replies were lost. */
export class OfferManyError<Result = unknown> extends DelaylineError {
  static override readonly name: string = "OfferManyError";
  declare readonly code: "OFFER_MANY";

  constructor(
    queue: string,
    /** For each message, in the order of the call: its result or its error. */
    readonly results: readonly (Result | OfferError)[],
  ) {
    const failures = results.filter((result) => result instanceof OfferError);
    super(
      "OFFER_MANY",
      `${failures.length} of ${results.length} offers to queue "${queue}" failed, the first with: ${failures[0]?.message}`,
    );
  }
}

/**
 * Due messages with an unknown layout were moved to the quarantine, so that they do not hold up the others.
 *
 * Their bytes are in the LIST `delayline_unreadable:{queue}`; see `quarantine` of the queue's handles.
 */
export class QuarantineError extends DelaylineError {
  static override readonly name: string = "QuarantineError";
  declare readonly code: "QUARANTINED";

  constructor(
    readonly queue: string,
    /** How many messages this one transfer moved there. */
    readonly count: number,
  ) {
    super(
      "QUARANTINED",
      `${count} due message(s) of queue "${queue}" have an unknown layout and were put into its quarantine list`,
    );
  }
}

/**
 * A user's function failed: a handler given to `subscribe`, its `onError`, or the `retry` of a reliable queue. `cause`
 * is the error that it threw.
 *
 * A plain queue's message has left Redis before its handler is called: it is handled at most once. A reliable
 * queue's message is retried.
 */
export class HandlerError extends DelaylineError {
  static override readonly name: string = "HandlerError";
  declare readonly code: "HANDLER";

  constructor(
    readonly queue: string,
    cause: unknown,
    failed: "handler" | "onError" | "retry" = "handler",
  ) {
    super("HANDLER", `the ${failed} of queue "${queue}" failed`, { cause });
  }
}

/** `close({ handlerTimeout })` stopped waiting for handlers or for bodies of `for await` loops. */
export class LeftRunningError extends DelaylineError {
  static override readonly name: string = "LeftRunningError";
  declare readonly code: "LEFT_RUNNING";

  constructor(
    readonly queue: string,
    /** How many were left running. */
    readonly count: number,
  ) {
    super(
      "LEFT_RUNNING",
      `${count} handler(s) of queue "${queue}" were still running when close() stopped waiting for them`,
    );
  }
}

/**
 * A handle does not fit the kind of queue in Redis, so it misses messages: a blocking consumer of a reliable queue, an
 * exclusive consumer of a queue without partitions, or an ordinary handle that cannot follow a queue to its partitions.
 *
 * Nothing is lost. It is reported once for each open queue, and again only if the queue has changed since.
 */
export class WrongHandleError extends DelaylineError {
  static override readonly name: string = "WrongHandleError";
  declare readonly code: "WRONG_HANDLE";

  constructor(
    readonly queue: string,
    /** The mistake and its remedy, as a completion of `queue "..."`. */
    what: string,
  ) {
    super("WRONG_HANDLE", `queue "${queue}" ${what}`);
  }
}

/**
 * Event: this process cannot plan a schedule, because its calendar or payload function has thrown, or croner is not installed.
 * Other processes may be able to; if none is, the schedule stops after its placed ticks. `cause` says why.
 *
 * It is reported once for each schedule, until it has been planned again.
 */
export class ScheduleError extends DelaylineError {
  static override readonly name: string = "ScheduleError";
  declare readonly code: "SCHEDULE";

  constructor(
    readonly queue: string,
    /** The schedule's name. */
    readonly schedule: string,
    cause: unknown,
  ) {
    const why = textOfThrown(cause, "its code");
    const what = `cannot plan schedule ${JSON.stringify(schedule)} of queue "${queue}": ${why}`;
    super("SCHEDULE", what, { cause });
  }
}

/**
 * The reason of a delivery's signal when its message was revoked: this attempt counts for nothing, and no other follows. A handler
 * may end by throwing it; it is never reported.
 */
export class RevokedError extends DelaylineError {
  static override readonly name: string = "RevokedError";
  declare readonly code: "REVOKED";

  constructor(
    readonly queue: string,
    /** The reason that was given to `revoke`; undefined if none was. */
    readonly reason: string | undefined,
  ) {
    const why = reason === undefined ? "" : `: ${reason}`;
    super("REVOKED", `the message of queue "${queue}" was revoked${why}`);
  }
}

/**
 * The reason of a delivery's signal when its handler has run for its `timeLimit`. A handler that throws it has failed, as with any
 * other error. A handler that does not end within `grace` is given up, and this error is reported with `isStuck`: the attempt has
 * failed, and nothing that the handler still does counts.
 */
export class TimeLimitError extends DelaylineError {
  static override readonly name: string = "TimeLimitError";
  declare readonly code: "TIME_LIMIT";
  /** Whether the handler was given up because it did not end. */
  readonly isStuck: boolean;

  /** @internal `grace` is given if it has passed, too. */
  constructor(
    readonly queue: string,
    /** Milliseconds. */
    readonly timeLimit: number,
    grace?: number,
  ) {
    const what = `a handler of queue "${queue}" has run for its time limit of ${timeLimit} ms`;
    const stuck = grace === undefined ? "" : ` and for ${grace} ms more, so it was given up`;
    super("TIME_LIMIT", `${what}${stuck}`);
    this.isStuck = grace !== undefined;
  }
}

/** The message of an error, and the remedy for its cause, if one is known. */
function withWayOut(error: Error): string {
  const { repair } = causeOf(error) ?? {};
  return repair === undefined
    ? error.message
    : `${error.message.replace(/\.?\s*$/, "")}; ${repair}`;
}

/**
 * Copies an error of ioredis without the command's arguments. Even the message of an "unknown command" reply quotes
 * them.
 */
function withoutArguments(error: unknown): Error {
  if (!isError(error)) return new Error("unknown failure");
  const message = isGivenUp(error)
    ? "the connection was lost before the reply came"
    : messageOf(error).replace(/,? with args beginning with:.*/s, "");
  const copy = new Error(message);
  Object.defineProperty(copy, "name", {
    value: textField(error, "name") ?? "Error",
    configurable: true,
  });
  const code = fieldOf(error, "code");
  if (typeof code === "string") Object.assign(copy, { code });
  return copy;
}
