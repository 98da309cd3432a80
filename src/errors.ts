/**
 * The errors that are ours. Every one extends {@link DelaylineError} and carries a stable `code`.
 *
 * No payload and no password appears in any of them, however it is printed: not in `message`, not
 * through `util.inspect`, `JSON.stringify` or `cause`. ioredis's own errors carry the arguments of
 * the command that failed, the payload among them, so they are never handed on as they are.
 */
import { UnreadableError } from "./codecs/unreadable-error.ts";
import { isGivenUp, replyOf } from "./failure.ts";

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
  | "HANDLER";

/** The base of every error that Delayline itself raises. */
export class DelaylineError extends Error {
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
  constructor(what: string) {
    super("CLOSED", `${what} is closed`);
  }
}

/** The codec could not encode a payload; nothing was sent. `cause` is the codec's error. */
export class EncodeError extends DelaylineError {
  constructor(queue: string, codec: string, cause: unknown) {
    super("ENCODE", `cannot encode a payload for queue "${queue}" with codec "${codec}"`, {
      cause,
    });
  }
}

/**
 * A message was taken from Redis, but the codec could not decode it.
 *
 * Nothing is lost: the bytes are in {@link DecodeError.bytes} and in the queue's quarantine list.
 * Built-in codecs say what is wrong; of another codec's error only the name is kept, since decoders
 * quote what they read.
 */
export class DecodeError extends DelaylineError {
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

/** A Redis command failed: refused by the server, or its reply never came. */
export class RedisError extends DelaylineError {
  /**
   * The first word of the server's reply (`WRONGTYPE`, `OOM`, `READONLY`, `NOPERM`, ...), or
   * undefined if the server did not reply (a lost connection, a time-out).
   */
  readonly reply: string | undefined;

  constructor(doing: string, error: unknown, code: ErrorCode = "REDIS") {
    const cause = withoutArguments(error);
    super(code, `${doing}: ${cause.message}`, { cause });
    this.reply = replyOf(cause);
  }
}

/** What is known about an offer that was rejected. */
export type Stored =
  /** Redis refused it, or it was never sent. */
  | "not-stored"
  /** The connection was lost before the reply came: it may be in Redis or not. */
  | "unknown";

/** Redis did not accept an offer, or its reply was lost. */
export class OfferError extends RedisError {
  /** Whether the message may be in Redis all the same. */
  readonly stored: Stored;

  constructor(doing: string, error: unknown, mayBeStored = replyOf(error) === undefined) {
    super(doing, error, "OFFER");
    this.stored = mayBeStored ? "unknown" : "not-stored";
  }
}

/** Some of the messages of an `offerMany` were not accepted, or their replies were lost. */
export class OfferManyError<Result = unknown> extends DelaylineError {
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
 * Their bytes are in the list `delayline_quarantine:{queue}`.
 */
export class QuarantineError extends DelaylineError {
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
 * A handler given to `subscribe` threw or rejected. `cause` is what it threw.
 *
 * The message had left Redis when the handler was called: consumption is at most once.
 */
export class HandlerError extends DelaylineError {
  constructor(
    readonly queue: string,
    cause: unknown,
  ) {
    super("HANDLER", `the handler of queue "${queue}" failed`, { cause });
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
    : error.message.replace(/,? with args beginning with:.*/s, "");
  const copy = new Error(message);
  Object.defineProperty(copy, "name", { value: error.name, configurable: true });
  const code: unknown = "code" in error ? error.code : undefined;
  if (typeof code === "string") Object.assign(copy, { code });
  return copy;
}
