import { replyOf } from "../failure.ts";
import { networkTime } from "../time/runtime.ts";
import { spread } from "../time/spread.ts";

/** A block that a connection begins. */
export interface Block {
  /** How long it may last, in seconds. */
  readonly seconds: number;
  /** To be called when its reply has come. */
  readonly end: () => void;
}

/** A long block that is under way. */
interface LongBlock {
  readonly lists: readonly string[];
  /** Ends it, so that its connection has to reply. */
  readonly prove: () => void;
  timer: NodeJS.Timeout | undefined;
}

/**
 * How long the blocks of a client may last on one server, and what ends them early.
 *
 * A blocked connection cannot be asked whether it is alive: only the reply at the end of its block shows that. And
 * blocks that end are most of what an idle process would send. So a block is **short** or **long**:
 *
 * - Short, two seconds, if anything has happened in one of its queues lately, or if this process would not hear of it.
 * - Long otherwise. Together the long blocks of a client end once in `quiet` milliseconds, however many there are.
 *
 * When something happens in a queue during a long block, the block returns its message, or another process took that.
 * If the block goes on, its connection may be dead: after a second the block is ended with CLIENT UNBLOCK, and the reply
 * has to come at once.
 *
 * A queue is named by the key of its ready LIST.
 */
export class Blocks {
  readonly #quiet: number;
  readonly #askForUnblock: () => Promise<unknown>;
  /** How many tasks of this process hear what happens in each queue. */
  readonly #heard = new Map<string, number>();
  /** When something has happened last in a queue that is heard. */
  readonly #happenedAt = new Map<string, number>();
  readonly #long = new Set<LongBlock>();
  /** Whether Redis lets this user end blocks; undefined until it was asked. */
  #mayUnblock: boolean | undefined;

  /**
   * @param quiet milliseconds in which one of the long blocks ends.
   * @param askForUnblock sends a CLIENT UNBLOCK that ends nothing.
   */
  constructor(quiet: number, askForUnblock: () => Promise<unknown>) {
    this.#quiet = quiet;
    this.#askForUnblock = askForUnblock;
  }

  /** From now on a task tells what happens in this queue. Returns a function that ends this. */
  hear(list: string): () => void {
    this.#heard.set(list, (this.#heard.get(list) ?? 0) + 1);
    return () => {
      const left = (this.#heard.get(list) ?? 1) - 1;
      if (left > 0) this.#heard.set(list, left);
      else {
        this.#heard.delete(list);
        this.#happenedAt.delete(list);
        for (const block of this.#of(list)) this.#proveSoon(block);
      }
    };
  }

  /** Something has happened in this queue: a message became ready, or may be about to. */
  happened(list: string): void {
    if (this.#heard.has(list)) this.#happenedAt.set(list, networkTime.now());
    for (const block of this.#of(list)) this.#proveSoon(block);
  }

  /** Another connection to the server has died. */
  suspectAll(): void {
    for (const block of this.#long) this.#proveSoon(block);
  }

  /** A connection is going to block for these queues. `prove` ends its block, if that is long. */
  begin(lists: readonly string[], prove: () => void): Block {
    if (!this.#isQuiet(lists)) return SHORT;
    if (this.#mayUnblock !== true) {
      this.#ask();
      return SHORT;
    }
    const block = { lists, prove, timer: undefined };
    this.#long.add(block);
    const seconds = spread(this.#quiet * this.#long.size) / 1000;
    return {
      seconds: Math.min(Math.max(Math.round(seconds), SECONDS), MAX),
      end: () => this.#end(block),
    };
  }

  #isQuiet(lists: readonly string[]): boolean {
    const since = networkTime.now() - RECENT;
    return lists.every(
      (list) => this.#heard.has(list) && (this.#happenedAt.get(list) ?? -Infinity) < since,
    );
  }

  #of(list: string): LongBlock[] {
    return [...this.#long].filter(({ lists }) => lists.includes(list));
  }

  /** A message that is on its way ends the block first. */
  #proveSoon(block: LongBlock): void {
    block.timer ??= networkTime.setTimeout(block.prove, PATIENCE);
  }

  #end(block: LongBlock): void {
    networkTime.clearTimeout(block.timer);
    this.#long.delete(block);
  }

  #ask(): void {
    if (this.#mayUnblock !== undefined) return;
    this.#mayUnblock = false;
    this.#askForUnblock().then(
      () => (this.#mayUnblock = true),
      // Without a reply nothing is known, and the next block asks again.
      (error: unknown) => (this.#mayUnblock = replyOf(error) === undefined ? undefined : false),
    );
  }
}

/** How long a short block lasts, in seconds. */
const SECONDS = 2;

const SHORT: Block = { seconds: SECONDS, end: () => {} };

/** The longest block, in seconds. */
const MAX = 3600;

/**
 * Milliseconds for which blocks stay short after something has happened. Where messages come more often than that,
 * no block has to be ended.
 */
const RECENT = 10_000;

/** Milliseconds in which a block returns the message of what has happened, if it returns one at all. */
const PATIENCE = 1000;
