/**
 * What has to be true of a key of your own when a message is due, or the message is dropped. Exactly one of `is`, `isNot`
 * and `exists`.
 *
 * Redis compares text: what `GET` (or `HGET`, with a `field`) replies. A key that is missing is not equal to anything.
 */
export interface OnlyIf {
  /**
   * The Redis key, as your other code names it: a `keyPrefix` of this client is put before it. 1 to 1,000 bytes. On a
   * Cluster it has to be in the slot of the queue, so it needs the queue's hash tag, such as `{orders}:42:status`.
   */
  readonly key: string;
  /** A field of the key, which is a HASH then: 1 to 1,000 bytes. Defaults to the key itself, a string. */
  readonly field?: string;
  /** The value has to be this one, of at most 1,000 bytes. A missing key or field does not hold. */
  readonly is?: string;
  /** The value must not be this one, of at most 1,000 bytes. A missing key or field holds. */
  readonly isNot?: string;
  /** Whether the key (of any type) or the field has to exist, or must not exist. */
  readonly exists?: boolean;
}

/**
 * Packs a guard as a trailer carries it:
 *
 * `test(1) | length of the key(2, little-endian) | length of the field(2, little-endian) | key | field | value`
 *
 * The test is 0 for `is`, 1 for `isNot`, 2 for `exists: true` and 3 for `exists: false`; and 4 more with a field. The
 * script that moves the message reads it; see `lua/fragments/condition.ts`.
 */
export function packGuard({ key, field, is, isNot, exists }: OnlyIf): Buffer {
  const [test, value] = testOf(is, isNot, exists);
  const head = Buffer.alloc(5);
  const [keyBytes, fieldBytes] = [Buffer.from(key), Buffer.from(field ?? "")];
  head[0] = test + (field === undefined ? 0 : FIELD);
  head.writeUInt16LE(keyBytes.length, 1);
  head.writeUInt16LE(fieldBytes.length, 3);
  return Buffer.concat([head, keyBytes, fieldBytes, Buffer.from(value)]);
}

function testOf(is?: string, isNot?: string, exists?: boolean): [test: number, value: string] {
  if (is !== undefined) return [0, is];
  if (isNot !== undefined) return [1, isNot];
  return [exists === true ? 2 : 3, ""];
}

/** Unpacks a guard; undefined if the bytes are malformed. The move delivers such a message. */
export function unpackGuard(bytes: Buffer): OnlyIf | undefined {
  if (bytes.length < 5) return undefined;
  const test = bytes[0] as number;
  const keyEnd = 5 + bytes.readUInt16LE(1);
  const fieldEnd = keyEnd + bytes.readUInt16LE(3);
  if (test >= 2 * FIELD || fieldEnd > bytes.length) return undefined;
  const value = bytes.toString("utf8", fieldEnd);
  const tests: readonly Omit<OnlyIf, "key">[] = [
    { is: value },
    { isNot: value },
    { exists: true },
    { exists: false },
  ];
  return {
    key: bytes.toString("utf8", 5, keyEnd),
    ...(test >= FIELD && { field: bytes.toString("utf8", keyEnd, fieldEnd) }),
    ...(tests[test % FIELD] as Omit<OnlyIf, "key">),
  };
}

/** What a test with a field is more. */
const FIELD = 4;
