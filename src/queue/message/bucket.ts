/** Every message belongs to one of so many buckets. They are there for queues in partitions; nothing reads them yet. */
export const BUCKET_COUNT = 1024;

/**
 * The bucket of all messages with this key: the last 10 bits of its hash. It can never change: processes
 * of all versions and languages must agree on it.
 */
export function bucketOfKey(key: string): number {
  return hashOf(key) & (BUCKET_COUNT - 1);
}

/**
 * A hash of 32 bits, not negative. It can never change, as little as the buckets.
 *
 * It is FNV-1a of 32 bits over the text's UTF-8, and over that {@link mix}, since the low bits of FNV-1a
 * alone are not evenly spread.
 */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return mix(hash);
}

/** The finaliser of MurmurHash3 of 32 bits: each bit of the number changes about half of the result's. */
export function mix(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
