/** What decides the size of a message. */
interface Sized {
  readonly payload: Buffer;
}

/** How to read. */
export interface ReadPlan {
  /** The most messages to ask for. */
  readonly count: number;
  /** Whether to read by the script `readPacked`, which does not block. */
  readonly isPacked: boolean;
}

/**
 * Decides how many messages one read may ask for, so that its reply stays near 16 MiB, and whether a script packs them.
 *
 * XREADGROUP limits the number of entries only. So the limit follows the sizes of the messages read before: few
 * messages at first, more as long as they are small.
 *
 * A read is packed if the last one returned all that it asked for, which is a sign of a backlog; and if it may ask for
 * enough messages to be worth a script. All messages of a packed read share its bytes, which stay as long as one of
 * them is held. So it is to be no larger than the pieces in which a socket brings the messages otherwise; larger
 * messages are read as they are.
 */
export class ReadSize {
  #count = FIRST;
  /** The average size of the messages read last (bytes). */
  #size = Infinity;
  /** Whether the last read returned all that it asked for. */
  #wasFull = false;

  /** How to read for those who want so many messages. */
  planFor(wanted: number): ReadPlan {
    const packed = Math.min(wanted, MOST_PACKED, Math.floor(PACKED_BYTES / this.#size));
    if (this.#wasFull && packed >= LEAST_PACKED) return { count: packed, isPacked: true };
    return { count: Math.min(wanted, this.#count), isPacked: false };
  }

  /** Adapts to the messages that a read returned. */
  note(read: readonly Sized[], { count }: ReadPlan): void {
    this.#wasFull = read.length === count;
    if (read.length === 0) return;
    const bytes = read.reduce((sum, { payload }) => sum + payload.length, 0);
    this.#size = Math.max(bytes, 1) / read.length;
    this.#count = Math.max(1, Math.min(Math.floor(BYTES / this.#size), this.#count * GROWTH, MOST));
  }
}

/** Messages that the first read may ask for. */
const FIRST = 100;

/** The largest factor between the counts of two reads in a row. */
const GROWTH = 4;

/** The most messages of one read: about 300 us of Redis's time. */
const MOST = 1000;

/** The reply that is aimed at. */
const BYTES = 16_777_216;

/** The same for a packed read: as much as Node reads from a socket at once. */
const PACKED_BYTES = 65_536;

/** The most messages of a packed read: about a millisecond of Redis's time. */
const MOST_PACKED = 200;

/** The fewest messages for which a script is worth its price. */
const LEAST_PACKED = 16;
