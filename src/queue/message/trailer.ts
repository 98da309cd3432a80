import { packCollected, payloadsIn } from "./collected.ts";
import { packFailure, unpackFailure, type FailedAttempt } from "./failed-attempt.ts";
import { packGuard, unpackGuard, type OnlyIf } from "./only-if.ts";
import type { MessageHeaders } from "./headers.ts";
import { packOccurrence, type Occurrence } from "./occurrence.ts";

/**
 * The bytes after a message's payload, which Redisson and old readers ignore.
 *
 * Mostly that is a bare business key in UTF-8. A message that carries more has a structured trailer, which begins with
 * a byte that never occurs in UTF-8:
 *
 * `0xff | version(1) | field...`, where each field is `tag(1) | length(4, little-endian) | bytes`
 *
 * - tag 1, at most once: the business key;
 * - tag 2, for each header: `length of the name(2, little-endian) | name | value`, in UTF-8;
 * - tag 3, at most once: the number of attempts, 4 bytes, little-endian;
 * - tag 4, for each of the last ten failed attempts, oldest first: see `failed-attempt.ts`;
 * - tag 5, at most once, and only tag 9 or 10 before it: the lane, see `flow`;
 * - tag 6, at most once, and only those and the lane before it: the priority p, as the byte 128 - p;
 * - tag 7, at most once: what has to hold for the message to be delivered, see `only-if.ts`;
 * - tag 8, at most once: for how many milliseconds after its deadline it may be delivered, 8 bytes, little-endian;
 * - tag 9, at most once, and before all others: the tick of a schedule, see `occurrence.ts`;
 * - tag 10, at most once, and before all others: the message was offered with `once`, and for how many milliseconds after it was
 *   handled its key stays taken, 8 bytes, little-endian; see `lua/fragments/once-record.ts`. No tick has it.
 * - tag 11, at most once: the payloads that were collected before the message's own, see `collected.ts`.
 *
 * The script that moves the message asks tags 7 and 8, and then removes them; see `lua/fragments/condition.ts`.
 *
 * Only offers to a reliable queue have headers. Nothing writes the number of attempts. Scripts append failed attempts
 * when a delivery ends without success; see `lua/fragments/failure.ts`. The first one turns a bare key into a
 * field.
 *
 * Of several keys, counts, or headers with the same name, the first one applies. Fields with another tag, or with
 * malformed bytes, are skipped. If the fields do not fill the trailer exactly, or its version is unknown, the trailer
 * counts as empty.
 *
 * Scripts find the key in the same way: see `lua/fragments/member.ts`.
 */
export interface Trailer {
  /** The business key. */
  readonly key: string | undefined;
  readonly headers: MessageHeaders | undefined;
  /** The number of attempts to handle the message. */
  readonly attempts: number | undefined;
  /** What has to hold when the message is due. */
  readonly onlyIf?: OnlyIf | undefined;
  /** For how many milliseconds after its deadline the message may be delivered. */
  readonly deliverWithin?: number | undefined;
  /** The lane in which it waits for its turn, if the queue has lanes. */
  readonly lane?: string | undefined;
  /** Higher is sooner, within its lane. */
  readonly priority?: number | undefined;
  /** The payloads that were collected before the message's own, oldest first. */
  readonly collected?: readonly Buffer[] | undefined;
  /** If it was offered with `once`: for how many milliseconds after it was handled its key stays taken. */
  readonly once?: number | undefined;
}

const MARK = 0xff;
const VERSION = 1;
const TAG = {
  key: 1,
  header: 2,
  attempts: 3,
  failure: 4,
  lane: 5,
  priority: 6,
  guard: 7,
  expiry: 8,
  tick: 9,
  once: 10,
  collected: 11,
} as const;

const NOTHING: Trailer = { key: undefined, headers: undefined, attempts: undefined };

/** Packs a trailer: the bare key if there is nothing else. */
export function packTrailer({
  key = "",
  headers = {},
  attempts,
  failures = [],
  onlyIf,
  deliverWithin,
  occurrence,
  lane,
  priority,
  collected = [],
  once,
}: Partial<Trailer> & {
  readonly failures?: readonly FailedAttempt[];
  readonly occurrence?: Occurrence | undefined;
}): Buffer {
  const names = Object.keys(headers);
  const others = attempts ?? onlyIf ?? deliverWithin ?? occurrence ?? lane ?? priority ?? once;
  if (names.length + failures.length + collected.length === 0 && others === undefined)
    return Buffer.from(key);
  const parts: Buffer[] = [Buffer.from([MARK, VERSION])];
  if (once !== undefined) parts.push(...packField(TAG.once, packNumber(once)));
  if (occurrence !== undefined) parts.push(...packField(TAG.tick, packOccurrence(occurrence)));
  if (lane !== undefined) parts.push(...packField(TAG.lane, Buffer.from(lane)));
  if (priority !== undefined) parts.push(...packField(TAG.priority, Buffer.from([128 - priority])));
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
  if (onlyIf !== undefined) parts.push(...packField(TAG.guard, packGuard(onlyIf)));
  if (deliverWithin !== undefined) {
    parts.push(...packField(TAG.expiry, packNumber(deliverWithin)));
  }
  if (collected.length > 0) parts.push(...packField(TAG.collected, packCollected(collected)));
  for (const failure of failures) parts.push(...packField(TAG.failure, packFailure(failure)));
  return Buffer.concat(parts);
}

/** Unpacks a trailer, whatever its bytes are. It leaves out the failed attempts; see {@link failuresIn}. */
export function unpackTrailer(trailer: Buffer): Trailer {
  if (trailer[0] !== MARK) return { ...NOTHING, key: trailer.toString() || undefined };
  const fields = unpackFields(trailer);
  const headers: [name: string, value: string][] = [];
  let key: string | undefined;
  let attempts: number | undefined;
  let onlyIf: OnlyIf | undefined;
  let deliverWithin: number | undefined;
  let collected: readonly Buffer[] | undefined;
  for (const { tag, bytes } of fields) {
    if (tag === TAG.key) key ??= bytes.toString();
    if (tag === TAG.attempts && bytes.length === 4) attempts ??= bytes.readUInt32LE(0);
    if (tag === TAG.guard) onlyIf ??= unpackGuard(bytes);
    if (tag === TAG.expiry && bytes.length === 8) deliverWithin ??= Number(bytes.readBigUInt64LE());
    if (tag === TAG.collected) collected ??= payloadsIn(bytes);
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
    ...(onlyIf !== undefined && { onlyIf }),
    ...(deliverWithin !== undefined && { deliverWithin }),
    ...(collected !== undefined && { collected }),
    ...turnIn(fields),
    ...onceIn(fields),
  };
}

/** Whether the message with this trailer was offered with `once`: the field comes first, so that two bytes tell. */
export function isOnce(trailer: Buffer): boolean {
  return trailer[0] === MARK && trailer[2] === TAG.once;
}

function onceIn([first]: readonly Field[]): Pick<Trailer, "once"> {
  if (first?.tag !== TAG.once || first.bytes.length !== 8) return {};
  return { once: Number(first.bytes.readBigUInt64LE()) };
}

/** The lane and the priority: the fields at the beginning, behind tags 9 and 10. Scripts read them in the same way: see `lua/places/room.ts`. */
function turnIn(fields: readonly Field[]): Pick<Trailer, "lane" | "priority"> {
  let lane: string | undefined;
  let priority: number | undefined;
  for (const { tag, bytes } of fields) {
    if (tag === TAG.lane && lane === undefined && bytes.length <= LONGEST_LANE)
      lane = bytes.toString();
    else if (tag === TAG.priority && bytes.length === 1) priority ??= 128 - (bytes[0] as number);
    else if (tag < TAG.tick) break;
  }
  return { ...(lane !== undefined && { lane }), ...(priority !== undefined && { priority }) };
}

/** The length of a lane's name in bytes. */
export const MAX_LANE = 100;

/** That of a lane which a schedule has for itself, `schedule:` and its name. */
const LONGEST_LANE = 109;

/** Unpacks the failed attempts in a trailer, oldest first, whatever its bytes are. */
export function failuresIn(trailer: Buffer): FailedAttempt[] {
  if (trailer[0] !== MARK) return [];
  return unpackFields(trailer).flatMap(({ tag, bytes }) => {
    const failure = tag === TAG.failure ? unpackFailure(bytes) : undefined;
    return failure === undefined ? [] : [failure];
  });
}

interface Field {
  readonly tag: number;
  readonly bytes: Buffer;
}

function packNumber(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(number));
  return bytes;
}

function packField(tag: number, bytes: Buffer): [head: Buffer, bytes: Buffer] {
  const head = Buffer.alloc(5);
  head[0] = tag;
  head.writeUInt32LE(bytes.length, 1);
  return [head, bytes];
}

/** The fields of a structured trailer; none if its version is unknown, or if they do not fill it exactly. */
function unpackFields(trailer: Buffer): Field[] {
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
