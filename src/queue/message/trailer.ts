import { packFailure, unpackFailure, type FailedAttempt } from "./failed-attempt.ts";
import type { MessageHeaders } from "./headers.ts";

/**
 * What stands behind a message's payload, where Redisson and old readers look at nothing.
 *
 * Mostly that is a bare business key, in UTF-8. A message that carries more has a structured trailer,
 * which begins with a byte that UTF-8 never has:
 *
 * `0xff | version(1) | field...`, and each field is `tag(1) | length(4, little-endian) | bytes`
 *
 * - tag 1, at most once: the business key;
 * - tag 2, for each header: `length of its name(2, little-endian) | name | value`, in UTF-8;
 * - tag 3, at most once: how many attempts were made, 4 bytes, little-endian;
 * - tag 4, for each of the last ten failed attempts, oldest first: see `failed-attempt.ts`.
 *
 * Only offers to a reliable queue have headers. Nothing writes attempts. Failures are written by Redis, where a delivery
 * ends without success: see `lua/fragments/failure.ts`. A bare key becomes a field with the first of them.
 *
 * Of two keys or counts the first counts, of two headers of one name too. Fields with another tag are
 * skipped, and so are fields whose bytes make no sense. If the fields do not end where the trailer ends, or the version is another
 * one, the trailer says nothing; the message is as good as without it.
 *
 * Redis finds the key in the same way: see `lua/fragments/key-of.ts`.
 */
export interface Trailer {
  /** The business key. */
  readonly key: string | undefined;
  readonly headers: MessageHeaders | undefined;
  /** How many attempts were made to handle the message. */
  readonly attempts: number | undefined;
}

const MARK = 0xff;
const VERSION = 1;
const TAG = { key: 1, header: 2, attempts: 3, failure: 4 } as const;

const NOTHING: Trailer = { key: undefined, headers: undefined, attempts: undefined };

/** The bytes of a trailer: a bare key where there is no more than a key. */
export function packTrailer({
  key = "",
  headers = {},
  attempts,
  failures = [],
}: Partial<Trailer> & { readonly failures?: readonly FailedAttempt[] }): Buffer {
  const names = Object.keys(headers);
  if (names.length + failures.length === 0 && attempts === undefined) return Buffer.from(key);
  const parts: Buffer[] = [Buffer.from([MARK, VERSION])];
  if (key !== "") parts.push(...packField(TAG.key, Buffer.from(key)));
  for (const name of names) {
    const length = Buffer.alloc(2);
    length.writeUInt16LE(Buffer.byteLength(name));
    const bytes = [length, Buffer.from(name), Buffer.from(headers[name] as string)];
    parts.push(...packField(TAG.header, Buffer.concat(bytes)));
  }
  if (attempts !== undefined) {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(attempts);
    parts.push(...packField(TAG.attempts, bytes));
  }
  for (const failure of failures) parts.push(...packField(TAG.failure, packFailure(failure)));
  return Buffer.concat(parts);
}

/** Reads a trailer, whatever its bytes are, but for its failures: hardly anybody needs them. */
export function unpackTrailer(trailer: Buffer): Trailer {
  if (trailer[0] !== MARK) return { ...NOTHING, key: trailer.toString() || undefined };
  const fields = unpackFields(trailer);
  const headers: [name: string, value: string][] = [];
  let key: string | undefined;
  let attempts: number | undefined;
  for (const { tag, bytes } of fields) {
    if (tag === TAG.key) key ??= bytes.toString();
    if (tag === TAG.attempts && bytes.length === 4) attempts ??= bytes.readUInt32LE(0);
    if (tag === TAG.header && bytes.length >= 2) {
      const end = 2 + bytes.readUInt16LE(0);
      if (end <= bytes.length)
        headers.push([bytes.toString("utf8", 2, end), bytes.toString("utf8", end)]);
    }
  }
  return {
    key: key === "" ? undefined : key,
    headers: headers.length === 0 ? undefined : Object.fromEntries(headers.toReversed()),
    attempts,
  };
}

/** The failed attempts that a trailer tells, oldest first; whatever its bytes are. */
export function failuresIn(trailer: Buffer): FailedAttempt[] {
  if (trailer[0] !== MARK) return [];
  return unpackFields(trailer).flatMap(({ tag, bytes }) => {
    const failure = tag === TAG.failure ? unpackFailure(bytes) : undefined;
    return failure === undefined ? [] : [failure];
  });
}

function packField(tag: number, bytes: Buffer): [head: Buffer, bytes: Buffer] {
  const head = Buffer.alloc(5);
  head[0] = tag;
  head.writeUInt32LE(bytes.length, 1);
  return [head, bytes];
}

/** The fields of a structured trailer; none, if it has another version, or if they do not fill it exactly. */
function unpackFields(trailer: Buffer): { readonly tag: number; readonly bytes: Buffer }[] {
  const fields = [];
  if (trailer[1] !== VERSION) return [];
  let at = 2;
  while (at < trailer.length) {
    const from = at + 5;
    if (from > trailer.length) return [];
    const end = from + trailer.readUInt32LE(at + 1);
    if (end > trailer.length) return [];
    fields.push({ tag: trailer[at] as number, bytes: trailer.subarray(from, end) });
    at = end;
  }
  return fields;
}
