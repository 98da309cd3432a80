/** The commands to send next: a pop, a block, or both. */
export interface Step {
  /** How many messages to pop at most; 0 sends no pop. */
  readonly pop: number;
  /** Whether a block for one message is sent, behind the pop if there is one. */
  readonly isBlocking: boolean;
}

/**
 * Decides how to take for the waiters: by a block, by a pop, or by a pop in front of a block.
 *
 * A block waits, but returns one message. A pop returns many, but is wasted on an empty LIST. So a pop is only sent
 * when there may be messages: when the first waiter comes, after a pop that was filled, and after a block that returned
 * a message.
 *
 * With many consumers that is still too often: each message ends one consumer's block, and leaves nothing for the pop
 * that follows. So after an empty pop, the next one waits until 1 block has returned a message, then 3, 7, and at most
 * 15. A pop that returns a message resets this.
 *
 * The block serves the last waiter, and a pop the others. With a single waiter, a pop is only sent if that waiter takes
 * more than the one message that a block returns.
 */
export class PopRhythm {
  readonly #mayPop: boolean;
  readonly #isSparing: boolean;
  #isPopDue = true;
  /** How many blocks have to return a message between two pops. */
  #blocksBetween = 0;
  /** How many of these blocks are still to come. */
  #blocksLeft = 0;

  /**
   * `mayPop` is false for several LISTs in a fixed order, since only a block serves them in that order. `isSparing`
   * delays pops for a single waiter, too: that waiter also waits elsewhere, so its pops are often wasted.
   */
  constructor(mayPop: boolean, isSparing = false) {
    this.#mayPop = mayPop;
    this.#isSparing = isSparing;
  }

  /** The first waiter has come: messages may have arrived while there was none. */
  restart(): void {
    this.#isPopDue = !this.#isSparing || this.#blocksLeft === 0;
  }

  /** Decides what to send; `wanted` is how many messages each waiter takes at most. */
  next(wanted: readonly number[]): Step {
    const last = wanted.at(-1) ?? 1;
    const others = wanted.slice(0, -1).reduce((sum, max) => sum + max, 0);
    const isPopping = this.#mayPop && this.#isPopDue;
    if (isPopping && others > 0) return { pop: others, isBlocking: true };
    if (isPopping && last > 1) return { pop: last, isBlocking: false };
    return { pop: 0, isBlocking: true };
  }

  /** The pop of a step returned `count` messages. */
  onPop({ pop, isBlocking }: Step, count: number): void {
    if (isBlocking || this.#isSparing) {
      this.#blocksBetween =
        count === 0 ? Math.min(2 * this.#blocksBetween + 1, MAX_BLOCKS_BETWEEN) : 0;
      this.#blocksLeft = this.#blocksBetween;
    }
    if (!isBlocking) this.#isPopDue = count === pop;
  }

  /** The block of a step returned `count` messages: 0 or 1. */
  onBlock(count: number): void {
    this.#isPopDue = count > 0 && this.#blocksLeft === 0;
    if (count > 0 && this.#blocksLeft > 0) this.#blocksLeft--;
  }
}

/** The largest number of blocks between two pops. */
const MAX_BLOCKS_BETWEEN = 15;
