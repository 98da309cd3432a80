/** Which tick of a schedule a message stands for. */
export interface Occurrence {
  readonly schedule: string;
  /** Epoch ms. */
  readonly tick: number;
  /**
   * What the move does about other runs of the schedule: `skip` drops the message while one of them is ready or in flight;
   * `note` delivers it, so that later ones know of it; undefined does neither.
   */
  readonly overlap?: "skip" | "note" | undefined;
}

/** Packs an occurrence as a trailer carries it: `tick(8, little-endian) | flags(1) | name`. */
export function packOccurrence({ schedule, tick, overlap }: Occurrence): Buffer {
  const head = Buffer.alloc(9);
  head.writeBigUInt64LE(BigInt(tick));
  head[8] = overlap === undefined ? 0 : NOTED + (overlap === "skip" ? SKIPPED : 0);
  return Buffer.concat([head, Buffer.from(schedule)]);
}

/** The flags: bit 0 asks for other runs, bit 1 notes this one. See `lua/fragments/run.ts`. */
const SKIPPED = 1;
const NOTED = 2;
