/** An attempt to handle a message of a reliable queue that has failed. The message carries it along. */
export interface FailedAttempt {
  /** Which one: 1 is the first delivery. The attempts of a dead letter that was redriven begin anew at 1. */
  readonly attempt: number;
  /** When it failed (epoch ms), on the Redis server's clock. */
  readonly at: number;
  /**
   * Why: what the handler's error says, what `nack` or `reject` was given, or what has become of the consumer. What is
   * longer than 200 bytes of UTF-8 is cut.
   */
  readonly reason: string;
}

/**
 * The bytes of a failed attempt, as a trailer has them: `at(8, little-endian) | attempt(4, little-endian) | reason`. Redis
 * writes them in the same way: see `lua/fragments/failure.ts`.
 */
export function packFailure({ at, attempt, reason }: FailedAttempt): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeBigUInt64LE(BigInt(at), 0);
  head.writeUInt32LE(attempt, 8);
  return Buffer.concat([head, Buffer.from(reason)]);
}

/** Reads a failed attempt; undefined if its bytes make no sense. */
export function unpackFailure(bytes: Buffer): FailedAttempt | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const at = Number(bytes.readBigUInt64LE(0));
  if (at > LAST_DATE) return undefined;
  return { attempt: bytes.readUInt32LE(8), at, reason: bytes.toString("utf8", HEAD_BYTES) };
}

const HEAD_BYTES = 12;

/** The latest instant that a Date can be. Somebody else may have written any. */
const LAST_DATE = 8.64e15;
