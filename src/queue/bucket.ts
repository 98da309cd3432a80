/** Every message belongs to one of so many buckets. They are there for queues in partitions; nothing reads them yet. */
export const BUCKET_COUNT = 1024;

/**
 * The bucket of all messages with this key: the last 10 bits of a hash.
 *
 * The hash is FNV-1a of 32 bits over the key's UTF-8, and over that the finaliser of MurmurHash3 of 32
 * bits, since the low bits of FNV-1a alone are not evenly spread. It can never change: processes of all
 * versions and languages must agree on it.
 */
export function bucketOfKey(key: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(key)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) & (BUCKET_COUNT - 1);
}
