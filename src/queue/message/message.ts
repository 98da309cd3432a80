import { randomFillSync } from "node:crypto";
import { BUCKET_COUNT } from "./bucket.ts";
import { packTrailer, unpackTrailer, type Trailer } from "./trailer.ts";

/**
 * The bytes of a message, as they stand in the timeouts ZSET.
 *
 * `idLength(1) | id | payloadLength(8, little-endian) | payload | trailer`: Redisson's layout since
 * 3.21.1, written there by Lua's `struct.pack("Bc0Lc0", ...)`. Redisson ignores the trailer. Our ids are
 * always 16 bytes, so that messages of one deadline sort by id:
 *
 * `order stamp(8, big-endian) | random(54 bits) | bucket(10 bits)`
 *
 * The order stamp is the producer's estimate of the server's clock in microseconds. The bucket
 * tells where in a partitioned queue a message is, however many partitions there are; see `bucket.ts`. The
 * trailer holds a message's business key, if it has one; see `trailer.ts`.
 */

/** Length of the ids that we write, in bytes. Redisson's may have any length. */
export const ID_BYTES = 16;

declare const messageId: unique symbol;

/**
 * Where a delayed message is to be found: `<deadline>-<hex of its id>`, in the manner of stream ids.
 *
 * It sorts and reads well in logs, and holds no payload. A delayed message that is rescheduled gets a new one. In a
 * reliable queue it is the message's name on every delivery, too.
 */
export type MessageId = string & { readonly [messageId]: true };

/** A message as it was read from Redis. */
export interface StoredMessage extends Trailer {
  readonly id: Buffer;
  readonly payload: Buffer;
}

// Random bytes are drawn a page at a time: one system call for 512 ids.
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

/** A new 16-byte id with this order stamp (microseconds, a safe integer), in this bucket, or in any. */
export function createId(stamp: number, bucket?: number): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = Buffer.allocUnsafe(ID_BYTES);
  id.writeUInt32BE(Math.floor(stamp / 2 ** 32), 0);
  id.writeUInt32BE(stamp % 2 ** 32, 4);
  pool.copy(id, 8, used, used + 8);
  used += 8;
  if (bucket !== undefined) {
    const random = id.readUInt16BE(14) & ~(BUCKET_COUNT - 1);
    id.writeUInt16BE(random | bucket, 14);
  }
  return id;
}

/** The bucket of a message, which its id tells; undefined for ids that are not ours, such as Java's. */
export function bucketOf(id: Buffer): number | undefined {
  return id.length === ID_BYTES ? id.readUInt16BE(14) & (BUCKET_COUNT - 1) : undefined;
}

/** Packs a message into the bytes of a ZSET member; `more` is what it carries besides its key. */
export function packMember(
  id: Buffer,
  payload: Buffer,
  key = "",
  more?: Partial<Omit<Trailer, "key">>,
): Buffer {
  const trailer = more === undefined ? Buffer.from(key) : packTrailer({ ...more, key });
  const member = Buffer.allocUnsafe(1 + id.length + 8 + payload.length + trailer.length);
  member[0] = id.length;
  id.copy(member, 1);
  member.writeUInt32LE(payload.length, 1 + id.length);
  member.writeUInt32LE(0, 5 + id.length);
  payload.copy(member, 9 + id.length);
  trailer.copy(member, 9 + id.length + payload.length);
  return member;
}

/**
 * Unpacks a ZSET member, or returns undefined if its bytes have no known layout.
 *
 * Reads today's layout and that of Redisson before 3.21.1 (`dLc0`: an 8-byte random number as id,
 * then length and payload). They are told apart by the embedded length; the Lua in
 * `lua/fragments/unpack-member.ts` decides in the same way.
 */
export function unpackMember(member: Buffer): StoredMessage | undefined {
  const idLength = member[0] ?? 0;
  const head = 1 + idLength + 8;
  const length = member.length >= head ? Number(member.readBigUInt64LE(1 + idLength)) : Infinity;
  const isOld = member.length >= 16 && Number(member.readBigUInt64LE(8)) === member.length - 16;
  if (head + length === member.length || (head + length < member.length && !isOld)) {
    return {
      id: member.subarray(1, 1 + idLength),
      payload: member.subarray(head, head + length),
      ...unpackTrailer(member.subarray(head + length)),
    };
  }
  if (!isOld) return undefined;
  return { id: member.subarray(0, 8), payload: member.subarray(16), ...unpackTrailer(NO_TRAILER) };
}

const NO_TRAILER = Buffer.alloc(0);

/** The {@link MessageId} of a message with this deadline and id. */
export function formatMessageId(deadline: number, id: Buffer): MessageId {
  return `${deadline}-${id.toString("hex")}` as MessageId;
}

/** Length of the address of a message of ours: deadline(8, big-endian) | id(16). */
export const ADDRESS_BYTES = 24;

// A deadline is written as JavaScript writes numbers, which for a score that is none may be "1.5",
// "-Infinity" or "1e+300". Ids have 16 bytes, or 8 where Redisson made them.
const MESSAGE_ID = /^(-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|Infinity))-([0-9a-f]{32}|[0-9a-f]{16})$/;

/** Whether a text is a {@link MessageId}. A business key must not be one. */
export function isMessageId(text: string): text is MessageId {
  return MESSAGE_ID.test(text);
}

/** The address that a {@link MessageId} stands for: deadline(8, big-endian) | id. */
export function parseMessageId(text: MessageId): Buffer {
  const [, deadline, id] = MESSAGE_ID.exec(text) ?? [];
  return packAddress(Number(deadline), Buffer.from(id ?? "", "hex"));
}

/** The {@link MessageId} of the message with this address: {@link parseMessageId} the other way round. */
export function messageIdAt(address: Buffer): MessageId {
  // Both numbers are below 2^32; see `packAddress` for the other kind.
  const whole = address.readUInt32BE(0) * 2 ** 32 + address.readUInt32BE(4);
  const deadline = address[0] === 0 ? whole : address.readDoubleBE(0);
  return formatMessageId(deadline, address.subarray(8));
}

/**
 * The address of a message, as the order LIST holds it: 24 bytes for ours.
 *
 * A score that is no deadline is packed as a double, whose first byte is not 0: no such address is in
 * the LIST or in the index, but a {@link MessageId} leads to any member.
 */
export function packAddress(deadline: number, id: Buffer): Buffer {
  const address = Buffer.allocUnsafe(8 + id.length);
  id.copy(address, 8);
  if (!isPlain(deadline)) {
    address.writeDoubleBE(deadline);
    return address;
  }
  address.writeUInt32BE(Math.floor(deadline / 2 ** 32), 0);
  address.writeUInt32BE(deadline % 2 ** 32, 4);
  return address;
}

/** Whether a score is a deadline that an offer can have. */
export function isPlain(score: number): boolean {
  return Number.isSafeInteger(score) && score >= 0;
}
