/** How many slots Redis Cluster spreads its keys over. */
export const SLOT_COUNT = 16_384;

/** The slot of every key with this hash tag. */
export function slotOfTag(tag: string): number {
  return crc16(tag) % SLOT_COUNT;
}

/** The slot of a key: that of its hash tag, if it has one. */
export function slotOfKey(key: string): number {
  const [, tag] = /^[^{]*\{([^}]+)\}/s.exec(key) ?? [];
  return slotOfTag(tag ?? key);
}

/**
 * The checksum by which Redis Cluster finds the slot of a hash tag: CRC-16/XMODEM over its UTF-8.
 *
 * It can be computed in pieces: `crc16(a + b)` equals `crc16(b, crc16(a))`.
 */
export function crc16(text: string, begun = 0): number {
  let crc = begun;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
    crc &= 0xffff;
  }
  return crc;
}
