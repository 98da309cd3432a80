import { MAX_REASON_BYTES } from "../../lua/fragments/failure.ts";
import { LAST_DATE } from "../../time/last-date.ts";

export { MAX_FAILURES } from "../../lua/fragments/failure.ts";

/** A failed attempt to handle a message of a reliable queue. The message carries it. */
export interface FailedAttempt {
  /** 1 for the first delivery. After a redrive, attempts are counted from 1 again. */
  readonly attempt: number;
  /** When it failed (epoch ms on the Redis server's clock). */
  readonly at: number;
  /**
   * Why it failed: the message of the handler's error, the reason given to `nack` or `reject`, or what ended the
   * delivery. Cut after 200 bytes of UTF-8.
   */
  readonly reason: string;
}

/**
 * Packs a failed attempt as a trailer carries it: `at(8, little-endian) | attempt(4, little-endian) | reason`. Redis
 * writes the same bytes; see `lua/fragments/failure.ts`.
 *
 * `at` must be a whole number up to {@link LAST_DATE}.
 */
export function packFailure({ at, attempt, reason }: FailedAttempt): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeBigUInt64LE(BigInt(at), 0);
  head.writeUInt32LE(attempt, 8);
  const bytes = Buffer.from(reason);
  let end = Math.min(bytes.length, MAX_REASON_BYTES);
  // Not in the middle of a character, whose bytes but the first are 128 to 191.
  while (end < bytes.length && (bytes[end] as number) >> 6 === 2) end--;
  return Buffer.concat([head, bytes.subarray(0, end)]);
}

/** Unpacks a failed attempt; undefined if the bytes are malformed. */
export function unpackFailure(bytes: Buffer): FailedAttempt | undefined {
  if (bytes.length < HEAD_BYTES) return undefined;
  const at = Number(bytes.readBigUInt64LE(0));
  if (at > LAST_DATE) return undefined;
  return { attempt: bytes.readUInt32LE(8), at, reason: bytes.toString("utf8", HEAD_BYTES) };
}

const HEAD_BYTES = 12;
