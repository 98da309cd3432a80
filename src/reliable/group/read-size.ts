/** What was read, as far as its size goes. */
interface Sized {
  readonly payload: Buffer;
}

/**
 * How many messages one read may bring, so that its reply stays near 16 MiB. Redis can be told a number only, and
 * so it is judged by the messages that came before: few at first, and more while they are small.
 */
export class ReadSize {
  #count = FIRST;

  get count(): number {
    return this.#count;
  }

  /** A read has brought these. */
  note(read: readonly Sized[]): void {
    if (read.length === 0) return;
    const bytes = read.reduce((sum, { payload }) => sum + payload.length, 0);
    const fitting = Math.floor((BYTES * read.length) / Math.max(bytes, 1));
    this.#count = Math.max(1, Math.min(fitting, this.#count * GROWTH, MOST));
  }
}

/** Messages of the first read. */
const FIRST = 100;

/** By how much a read may be larger than the one before. */
const GROWTH = 4;

/** Messages that one read brings at most: some 300 microseconds of Redis's time. */
const MOST = 1000;

const BYTES = 16_777_216;
