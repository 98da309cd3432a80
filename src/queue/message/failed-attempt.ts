import { MAX_REASON_BYTES } from "../../lua/fragments/failed/failure.ts";
import { LAST_DATE } from "../../time/last-date.ts";

export { MAX_FAILURES } from "../../lua/fragments/failed/failure.ts";

/** An attempt to handle a message of a reliable queue that has failed. The message carries it along. */
export interface FailedAttempt {
  /** Which one: 1 is the first delivery. The attempts of a dead letter that was redriven begin anew at 1. */
  readonly attempt: number;
  /** When it failed (epoch ms), on the Redis server's clock. */
  readonly at: number;
  /**
   * Why: what the handler's error says, what `nack` or `reject` was given, or what became of the delivery. What is
   * longer than 200 bytes of UTF-8 is cut.
   */
  readonly reason: string;
}

/**
 * The bytes of a failed attempt, as a trailer has them: `at(8, little-endian) | attempt(4, little-endian) | reason`. Redis
 * writes them in the same way: see `lua/fragments/failure.ts`.
 *
 * `at` is a whole number up to {@link LAST_DATE}.
 */
export function packFailure({ at, attempt, reason }: FailedAttempt): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeBigUInt64LE(BigInt(at), 0);
  head.writeUInt32LE(attempt, 8);
  const bytes = Buffer.from(reason);
  let end = Math.min(bytes.length, MAX_REASON_BYTES);
  // Not in the middle of a character: all of its bytes but the first are 128 to 191.
  while (end < bytes.length && (bytes[end] as number) >> 6 === 2) end--;
  return Buffer.concat([head, bytes.subarray(0, end)]);
}

/** Reads a failed attempt; undefined if its bytes make no sense. */
export function unpackFailure(bytes: Buffer): FailedAttempt | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const at = Number(bytes.readBigUInt64LE(0));
  if (at > LAST_DATE) return undefined;
  return { attempt: bytes.readUInt32LE(8), at, reason: bytes.toString("utf8", HEAD_BYTES) };
}

const HEAD_BYTES = 12;
