/** What decides the size of a message. */
interface Sized {
  readonly payload: Buffer;
}

/**
 * Decides how many messages one read may ask for, so that its reply stays near 16 MiB.
 *
 * XREADGROUP limits the number of entries only. So the limit follows the sizes of the messages read before: few
 * messages at first, more as long as they are small.
 */
export class ReadSize {
  #count = FIRST;

  get count(): number {
    return this.#count;
  }

  /** Adapts the count to the messages that a read returned. */
  note(read: readonly Sized[]): void {
    if (read.length === 0) return;
    const bytes = read.reduce((sum, { payload }) => sum + payload.length, 0);
    const fitting = Math.floor((BYTES * read.length) / Math.max(bytes, 1));
    this.#count = Math.max(1, Math.min(fitting, this.#count * GROWTH, MOST));
  }
}

/** Messages that the first read may ask for. */
const FIRST = 100;

/** The largest factor between the counts of two reads in a row. */
const GROWTH = 4;

/** The most messages of one read: about 3 ms of Redis's time. With 200 a process with a thousand handlers is an eighth slower. */
const MOST = 1000;

/** The reply that is aimed at. */
const BYTES = 16_777_216;
