/** The number of buckets. Every message belongs to one bucket, which determines its partition. */
export const BUCKET_COUNT = 1024;

/**
 * The bucket of all messages with this partition key or business key. This must never change: processes of all versions
 * and languages have to agree on it.
 */
export function bucketOfKey(key: string): number {
  return bucketOfHash(hashOf(key));
}

/** The bucket of all messages whose key has this hash: its last 10 bits. */
export function bucketOfHash(hash: number): number {
  return hash & (BUCKET_COUNT - 1);
}

/** A random hash of this bucket. */
export function hashIn(bucket: number): number {
  return Math.floor(Math.random() * (2 ** 32 / BUCKET_COUNT)) * BUCKET_COUNT + bucket;
}

/**
 * Returns a hash of 32 bits, not negative. It must never change, because the ids and their buckets depend on it.
 *
 * It is {@link mix} of the 32-bit FNV-1a of the text's UTF-8: the low bits of FNV-1a alone are not evenly distributed.
 */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return mix(hash);
}

/** The finaliser of the 32-bit MurmurHash3: each input bit flips about half of the output bits. */
export function mix(bits: number): number {
  let hash = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A number from 0 to `most` that depends on the text alone. */
export function within(most: number, text: string): number {
  return Math.floor((hashOf(text) / 2 ** 32) * (most + 1));
}
