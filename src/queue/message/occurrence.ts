/** Which tick of a schedule a message stands for. */
export interface Occurrence {
  readonly schedule: string;
  /** Epoch ms. */
  readonly tick: number;
  /**
   * What the move does about other runs of the schedule: `skip` drops the message while one of them is ready or in flight;
   * `note` delivers it, so that later ones know of it; `wait` lets it wait in a lane of the schedule; undefined does nothing.
   */
  readonly overlap?: "skip" | "note" | "wait" | undefined;
}

/** Packs an occurrence as a trailer carries it: `tick(8, little-endian) | flags(1) | name`. */
export function packOccurrence({ schedule, tick, overlap }: Occurrence): Buffer {
  const head = Buffer.alloc(9);
  head.writeBigUInt64LE(BigInt(tick));
  head[8] = overlap === undefined ? 0 : FLAGS[overlap];
  return Buffer.concat([head, Buffer.from(schedule)]);
}

/** Bit 0 asks for other runs, bit 1 notes this one: see `lua/fragments/run.ts`. Bit 2 alone: see `lua/places/own-lanes.ts`. */
const FLAGS = { skip: 3, note: 2, wait: 4 } as const;
