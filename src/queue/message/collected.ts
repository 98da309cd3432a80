/**
 * The payloads that a message has collected before its own, oldest first, in a field of its trailer:
 *
 * `count(4) | bytes of all payloads(4) | { outcome(1) | id(16) | length(4) | payload }...`, numbers little-endian
 *
 * Each payload has the id of its offer, and the outcome as an entry of the index stores it: an offer that is sent again is
 * known by them. The script that collects writes the same; see `lua/fragments/collect.ts`.
 */

/** Packs payloads whose offers are not known. */
export function packCollected(payloads: readonly Buffer[]): Buffer {
  const parts = payloads.flatMap((payload) => {
    const head = Buffer.alloc(HEAD);
    head.writeUInt32LE(payload.length, HEAD - 4);
    return [head, payload];
  });
  const counts = Buffer.alloc(COUNTS);
  counts.writeUInt32LE(payloads.length, 0);
  counts.writeUInt32LE(
    payloads.reduce((sum, { length }) => sum + length, 0),
    4,
  );
  return Buffer.concat([counts, ...parts]);
}

/** Unpacks payloads, whatever the bytes are: undefined if they do not fill the field exactly. */
export function payloadsIn(bytes: Buffer): readonly Buffer[] | undefined {
  const payloads: Buffer[] = [];
  let at = COUNTS;
  while (at + HEAD <= bytes.length) {
    const from = at + HEAD;
    at = from + bytes.readUInt32LE(from - 4);
    payloads.push(bytes.subarray(from, at));
  }
  return at === bytes.length && payloads.length > 0 ? payloads : undefined;
}

const COUNTS = 8;
const HEAD = 21;
