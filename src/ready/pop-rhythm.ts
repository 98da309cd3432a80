/** What to send next: a pop, a block, or both. */
export interface Step {
  /** How many messages to pop at most; 0: no pop is sent. */
  readonly pop: number;
  /** Whether a block for one message is sent, behind the pop if there is one. */
  readonly isBlocking: boolean;
}

/**
 * Decides how to take for those who wait: by a block, by a pop, or by a pop in front of a block.
 *
 * A block brings one message, and waits for it. A pop brings many, but is wasted where there are none.
 * So a pop is sent only when there may be messages: when the first starts to wait, after a pop that
 * was filled, and after a block that brought one.
 *
 * Among many consumers that is still too often. Each message ends the block of one of them, and
 * nothing is left for the pop that follows. So after a pop in vain the next one is put off until 1
 * block has brought a message, then 3, 7, and at last 15. A pop that brings any ends that.
 *
 * The last who waits is left to the block; a pop takes for the others. If there are no others, a pop is
 * sent only where it can bring more than the block would.
 */
export class PopRhythm {
  readonly #mayPop: boolean;
  readonly #isSparing: boolean;
  #isPopDue = true;
  /** How many blocks bring a message between two pops. */
  #blocksBetween = 0;
  /** How many of these are left. */
  #blocksLeft = 0;

  /**
   * `mayPop`: false if there are several LISTs in a fixed order, since only a block knows which of them comes
   * first. `isSparing`: true if the only one who waits does without a pop as the others do, since he waits elsewhere
   * at the same time.
   */
  constructor(mayPop: boolean, isSparing = false) {
    this.#mayPop = mayPop;
    this.#isSparing = isSparing;
  }

  /** The first starts to wait: messages may have come while nobody did. */
  restart(): void {
    this.#isPopDue = !this.#isSparing || this.#blocksLeft === 0;
  }

  /** Decides what to send. `wanted`: how many messages each of those who wait takes at most. */
  next(wanted: readonly number[]): Step {
    const last = wanted.at(-1) ?? 1;
    const others = wanted.slice(0, -1).reduce((sum, max) => sum + max, 0);
    const isPopping = this.#mayPop && this.#isPopDue;
    if (isPopping && others > 0) return { pop: others, isBlocking: true };
    if (isPopping && last > 1) return { pop: last, isBlocking: false };
    return { pop: 0, isBlocking: true };
  }

  /** The pop of a step has brought `count` messages. */
  onPop({ pop, isBlocking }: Step, count: number): void {
    if (isBlocking || this.#isSparing) {
      this.#blocksBetween = count === 0 ? Math.min(2 * this.#blocksBetween + 1, BLOCKS_BETWEEN) : 0;
      this.#blocksLeft = this.#blocksBetween;
    }
    if (!isBlocking) this.#isPopDue = count === pop;
  }

  /** The block of a step has brought `count` messages: 0 or 1. */
  onBlock(count: number): void {
    this.#isPopDue = count > 0 && this.#blocksLeft === 0;
    if (count > 0 && this.#blocksLeft > 0) this.#blocksLeft--;
  }
}

/** So many blocks bring a message between two pops at most. */
const BLOCKS_BETWEEN = 15;
