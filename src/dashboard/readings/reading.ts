/** Some items, and where those behind them begin. */
export interface Slice<Item> {
  readonly items: readonly Item[];
  /** How many items come before the next slice; undefined behind the last. */
  readonly next: number | undefined;
}

/** How many items are remembered, to page back to. */
const REMEMBERED = 1000;

/** For how long a slice may be gathered (ms). What was found until then is handed out. */
const PATIENCE = 1000;

/**
 * Something that is read a slice at a time, as somebody pages through it. It goes on where it stopped, and what was read
 * stands still for who pages back.
 */
export class Reading<Item> {
  readonly #source: AsyncGenerator<Item | undefined, void, void>;
  readonly #stop: AbortController;
  /** Items from {@link Reading.#dropped} on. */
  readonly #items: Item[] = [];
  #dropped = 0;
  #coming: Promise<IteratorResult<Item | undefined, void>> | undefined;
  #isAtEnd = false;
  /** One slice after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * Undefined from the source is a step in which nothing was found: there it rests when time is up. Otherwise a search that
   * finds nothing would run to its end, though nobody asks for more. `stop` ends the step that is under way.
   */
  constructor(
    source: AsyncGenerator<Item | undefined, void, void>,
    stop: AbortController = new AbortController(),
  ) {
    this.#source = source;
    this.#stop = stop;
  }

  /**
   * `limit` items at most, behind the first `from`. There may be fewer, and even none, though it is not the end: where much
   * has to be looked through to find little. Undefined if they are not remembered any more.
   */
  async slice(from: number, limit: number): Promise<Slice<Item> | undefined> {
    const slicing = this.#turn.then(() => this.#slice(from, limit));
    this.#turn = slicing.catch(() => {});
    return await slicing;
  }

  /** Ends what reads. */
  async close(): Promise<void> {
    void this.#coming?.catch(() => {});
    this.#stop.abort();
    await this.#source.return();
  }

  async #slice(from: number, limit: number): Promise<Slice<Item> | undefined> {
    if (from < this.#dropped || from > this.#end) return undefined;
    await this.#readTo(from + limit + 1);
    const items = this.#items.slice(from - this.#dropped, from - this.#dropped + limit);
    const next = from + items.length;
    const surplus = this.#items.length - REMEMBERED;
    if (surplus > 0) {
      this.#items.splice(0, surplus);
      this.#dropped += surplus;
    }
    return { items, next: next < this.#end || !this.#isAtEnd ? next : undefined };
  }

  get #end(): number {
    return this.#dropped + this.#items.length;
  }

  /** Reads until so many items are known, or time is up. */
  async #readTo(count: number): Promise<void> {
    const { promise: late, cancel } = after(PATIENCE);
    const until = performance.now() + PATIENCE;
    try {
      while (this.#end < count && !this.#isAtEnd && performance.now() < until) {
        this.#coming ??= this.#source.next();
        const found = await Promise.race([this.#coming, late]);
        if (found === undefined) return;
        this.#coming = undefined;
        if (found.done === true) this.#isAtEnd = true;
        else if (found.value !== undefined) this.#items.push(found.value);
      }
    } finally {
      cancel();
    }
  }
}

function after(milliseconds: number): { promise: Promise<undefined>; cancel: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const promise = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  return { promise, cancel: () => clearTimeout(timer) };
}
