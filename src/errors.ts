/**
 * The errors that are ours. Every one extends {@link DelaylineError} and carries a stable `code`.
 *
 * No payload and no password appears in any of them, however it is printed: not in `message`, not
 * through `util.inspect`, `JSON.stringify` or `cause`. ioredis's own errors carry the arguments of
 * the command that failed, the payload among them, so they are never handed on as they are.
 */
import { UnreadableError } from "./codecs/unreadable-error.ts";
import { UnwritableError } from "./codecs/unwritable-error.ts";
import { hadNoEffect, isGivenUp, messageOf, replyOf, UnansweredError } from "./failure.ts";

/** The stable codes of {@link DelaylineError}. */
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
  | "LEFT_RUNNING";

/**
 * Every error of ours, for programs that compare codes: in a `switch (error.code)` TypeScript knows which
 * one it is.
 */
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
  | LeftRunningError;

/** The base of every error that Delayline itself raises. */
export class DelaylineError extends Error {
  // A literal, here and below: a bundler may rename the classes.
  static override readonly name: string = "DelaylineError";

  /** A stable name for programs to compare with; messages may be reworded, codes are not. */
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/** The client, or the subscription, was closed before or during the call. */
export class ClosedError extends DelaylineError {
  static override readonly name: string = "ClosedError";
  declare readonly code: "CLOSED";

  constructor(what: string) {
    super("CLOSED", `${what} is closed`);
  }
}

/**
 * The codec could not encode a payload; nothing was sent. `cause` is the codec's error.
 *
 * The `msgpack` codec says where in the payload, and what kind of thing it was; never the value.
 */
export class EncodeError extends DelaylineError {
  static override readonly name: string = "EncodeError";
  declare readonly code: "ENCODE";

  constructor(queue: string, codec: string, cause: unknown) {
    const why = cause instanceof UnwritableError ? `: ${cause.message}` : "";
    super("ENCODE", `cannot encode a payload for queue "${queue}" with codec "${codec}"${why}`, {
      cause,
    });
  }
}

/**
 * The codec could not decode a message.
 *
 * Nothing is lost: the bytes are in {@link DecodeError.bytes}. If the message was taken, they are in the queue's
 * quarantine, too, or in a dead letter of a reliable queue; if it was only read (`get`, `peek`), it stays where it is.
 * Built-in codecs say what is wrong; of another codec's error only the name is kept, since decoders
 * quote what they read.
 */
export class DecodeError extends DelaylineError {
  static override readonly name: string = "DecodeError";
  declare readonly code: "DECODE";

  readonly #bytes: Buffer;

  constructor(queue: string, codec: string, bytes: Buffer, cause: unknown) {
    const kind = cause instanceof Error ? cause.name : typeof cause;
    const why = cause instanceof UnreadableError ? `: ${cause.message}` : ` (${kind})`;
    super(
      "DECODE",
      `cannot decode a message of ${bytes.length} bytes from queue "${queue}" with codec "${codec}"${why}`,
    );
    this.#bytes = bytes;
  }

  /** The raw payload. A getter on a private field, so that printing the error does not print it. */
  get bytes(): Buffer {
    return this.#bytes;
  }
}

/** A payload is larger than `maxPayloadBytes`; nothing was sent. */
export class PayloadTooLargeError extends DelaylineError {
  static override readonly name: string = "PayloadTooLargeError";
  declare readonly code: "PAYLOAD_TOO_LARGE";

  constructor(
    queue: string,
    /** The encoded size in bytes. */
    readonly size: number,
    /** The limit in bytes. */
    readonly limit: number,
  ) {
    super(
      "PAYLOAD_TOO_LARGE",
      `a payload for queue "${queue}" has ${size} bytes, but maxPayloadBytes is ${limit}`,
    );
  }
}

/** What a call that has failed may have changed in Redis. */
export type Effect =
  /** Nothing: it was refused, or never sent. */
  | "none"
  /** It was sent, and no reply came: it may have been carried out or not. */
  | "unknown";

/** A Redis command failed: refused by the server, or its reply never came. */
export class RedisError extends DelaylineError {
  static override readonly name: string = "RedisError";
  declare readonly code: "REDIS" | "OFFER";

  /**
   * The first word of the server's reply (`WRONGTYPE`, `OOM`, `READONLY`, `NOPERM`, ...; `ERR` is many things,
   * on Redis 7.0 also a missing permission inside a script), or
   * undefined if the server did not reply (a lost connection, a time-out).
   */
  readonly reply: string | undefined;

  /** What the command may have changed in Redis. */
  readonly effect: Effect;

  constructor(
    doing: string,
    error: unknown,
    code: "REDIS" | "OFFER" = "REDIS",
    effect: Effect = hadNoEffect(error) ? "none" : "unknown",
  ) {
    const copy = withoutArguments(error);
    // The reason of an abort is the caller's own.
    const cause = (error instanceof UnansweredError && error.cause) || copy;
    super(code, `${doing}: ${copy.message}`, { cause });
    this.reply = replyOf(copy);
    this.effect = effect;
  }
}

/** What is known about an offer that was rejected. */
export type Stored =
  /** Redis refused it, or it was never sent. */
  | "not-stored"
  /** It was sent, and no reply came in time: it may be in Redis or not. */
  | "unknown";

/** Redis did not accept an offer, or its reply was lost. */
export class OfferError extends RedisError {
  static override readonly name: string = "OfferError";
  declare readonly code: "OFFER";

  /** Whether the message may be in Redis all the same. */
  readonly stored: Stored;

  constructor(doing: string, error: unknown, effect?: Effect) {
    super(doing, error, "OFFER", effect);
    this.stored = this.effect === "none" ? "not-stored" : "unknown";
  }
}

/** Some of the messages of an `offerMany` were not accepted, or their replies were lost. */
export class OfferManyError<Result = unknown> extends DelaylineError {
  static override readonly name: string = "OfferManyError";
  declare readonly code: "OFFER_MANY";

  constructor(
    queue: string,
    /** For each message, in the order of the call: its result, or why it has none. */
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
 * Messages that no reader could unpack were put aside, so that the others flow.
 *
 * Their bytes are in the list `delayline_unreadable:{queue}`; see `quarantine` of the queue's handles.
 */
export class QuarantineError extends DelaylineError {
  static override readonly name: string = "QuarantineError";
  declare readonly code: "QUARANTINED";

  constructor(
    readonly queue: string,
    /** How many messages were put aside by this one step. */
    readonly count: number,
  ) {
    super(
      "QUARANTINED",
      `${count} due message(s) of queue "${queue}" have an unknown layout and were put into its quarantine list`,
    );
  }
}

/**
 * A function of the user's failed: a handler given to `subscribe`, its `onError`, or the `retry` of a reliable queue.
 * `cause` is what it threw.
 *
 * The message of a plain queue had left Redis when its handler was called: consumption is at most once. That of a
 * reliable queue is retried.
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

/** `close({ timeout })` did not wait any longer for handlers, or bodies of `for await` loops. */
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
 * A copy of what ioredis threw, without the command's arguments.
 *
 * "unknown command" replies quote the first arguments in the message itself.
 */
function withoutArguments(error: unknown): Error {
  if (!(error instanceof Error)) return new Error("unknown failure");
  const message = isGivenUp(error)
    ? "the connection was lost before the reply came"
    : messageOf(error).replace(/,? with args beginning with:.*/s, "");
  const copy = new Error(message);
  Object.defineProperty(copy, "name", { value: error.name, configurable: true });
  const code: unknown = "code" in error ? error.code : undefined;
  if (typeof code === "string") Object.assign(copy, { code });
  return copy;
}
