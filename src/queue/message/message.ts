import { randomFillSync } from "node:crypto";
import { bucketOfHash } from "./bucket.ts";
import { packTrailer, unpackTrailer, type Trailer } from "./trailer.ts";

/**
 * The bytes of a message in the timeouts ZSET:
 *
 * `idLength(1) | id | payloadLength(8, little-endian) | payload | trailer`
 *
 * This is Redisson's layout since 3.21.1 (`struct.pack("Bc0Lc0", ...)` in its Lua), except for the trailer, which
 * Redisson ignores. The trailer holds the business key and more; see `trailer.ts`. Delayline's ids always have 16
 * bytes, so messages with the same deadline sort by id:
 *
 * `order stamp(8, big-endian) | random(4) | hash(4, big-endian)`
 *
 * The order stamp is the producer's estimate of the server's clock in microseconds. The hash is that of the partition key
 * or business key, or random without one. Its last 10 bits are the message's bucket, which determines the partition,
 * however many partitions there are; see `bucket.ts`. Releases up to 0.1 wrote the bucket alone behind 54 random bits.
 */

/** The length of Delayline's ids in bytes. Redisson's ids may have another length. */
export const ID_BYTES = 16;

declare const messageId: unique symbol;

/**
 * The id of a message: `<deadline>-<hex>`, similar to a stream id. With it, the message can be found while it is
 * delayed.
 *
 * It is readable in logs, and contains nothing of the payload. Rescheduling a delayed message gives it a new id. In a
 * reliable queue, every delivery of the message carries its id.
 */
export type MessageId = string & { readonly [messageId]: true };

/** The fields of a ZSET member. */
export interface StoredMessage extends Trailer {
  readonly id: Buffer;
  readonly payload: Buffer;
}

// Random bytes are drawn by the page: one system call for 512 ids.
const pool = Buffer.allocUnsafe(4096);
let used = pool.length;

/** Makes an id with this order stamp (microseconds, a safe integer), and the hash of a key or a random one. */
export function createId(stamp: number, hash?: number): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = Buffer.allocUnsafe(ID_BYTES);
  id.writeUInt32BE(Math.floor(stamp / 2 ** 32), 0);
  id.writeUInt32BE(stamp % 2 ** 32, 4);
  pool.copy(id, 8, used, used + 8);
  used += 8;
  if (hash !== undefined) id.writeUInt32BE(hash, ID_BYTES - 4);
  return id;
}

/** The bucket in an id; undefined for ids that Delayline did not make, such as Java's. */
export function bucketOf(id: Buffer): number | undefined {
  return id.length === ID_BYTES ? bucketOfHash(id.readUInt16BE(14)) : undefined;
}

/**
 * What the messages of one key have in common: the hash of the key, as text. Different keys have the same one in one of
 * 2^32 cases. A message without a key has one of its own; so has one whose id other software made, or an old release.
 */
export function sequenceIn(address: Buffer): string {
  return address.toString("latin1", Math.max(8, address.length - 4));
}

/** Packs a message into a ZSET member. `more` is the content of the trailer beside the key. */
export function packMember(
  id: Buffer,
  payload: Buffer,
  key = "",
  more?: Omit<Parameters<typeof packTrailer>[0], "key">,
): Buffer {
  const trailer =
    more !== undefined ? packTrailer({ ...more, key }) : key === "" ? NO_TRAILER : Buffer.from(key);
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
 * Unpacks a ZSET member; returns undefined if its layout is unknown.
 *
 * Reads the current layout and the one of Redisson before 3.21.1 (`dLc0`: a random 8-byte number as id, then length and
 * payload). The embedded length decides between the two, as in `lua/fragments/member.ts`.
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

/** The length of an address with an id of Delayline: deadline(8, big-endian) | id(16). */
export const ADDRESS_BYTES = 24;

// The deadline is written as JavaScript writes numbers. Another program may write any score, such as 1.5, -Infinity or
// 1e+300. Ids have 16 bytes, or 8 if Redisson made them.
const MESSAGE_ID = /^(-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|Infinity))-([0-9a-f]{32}|[0-9a-f]{16})$/;

/** Whether a text has the form of a {@link MessageId}. A business key must not have it. */
export function isMessageId(text: string): text is MessageId {
  return MESSAGE_ID.test(text);
}

/** The address in a {@link MessageId}: deadline(8, big-endian) | id. */
export function parseMessageId(text: MessageId): Buffer {
  const [, deadline, id] = MESSAGE_ID.exec(text) ?? [];
  return packAddress(Number(deadline), Buffer.from(id ?? "", "hex"));
}

/** How scripts are told which message: the address in a {@link MessageId}, or a business key; the other is empty. */
export function whichOf(idOrKey: string): { readonly id: Buffer | ""; readonly key: string } {
  return isMessageId(idOrKey) ? { id: parseMessageId(idOrKey), key: "" } : { id: "", key: idOrKey };
}

/** The {@link MessageId} of the message with this address: the inverse of {@link parseMessageId}. */
export function messageIdAt(address: Buffer): MessageId {
  return formatMessageId(deadlineIn(address), address.subarray(8));
}

/** The deadline in an address; any number if another program wrote it. See {@link packAddress} for its two forms. */
export function deadlineIn(address: Buffer): number {
  if (address[0] !== 0) return address.readDoubleBE(0);
  return address.readUInt32BE(0) * 2 ** 32 + address.readUInt32BE(4);
}

/**
 * Packs the address of a message, as the order LIST holds it.
 *
 * A score that an offer cannot have is packed as a double, whose first byte is not 0. Such an address is neither in
 * the LIST nor in the index of business keys, but a {@link MessageId} has to find every member.
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

/** Whether an offer can have this score as its deadline. */
export function isPlain(score: number): boolean {
  return Number.isSafeInteger(score) && score >= 0;
}
