import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { HttpError } from "../http/reply.ts";
import { networkTime } from "../../../inside.ts";

/** A page of a list. */
interface Page<Item> {
  readonly items: readonly Item[];
  /** The cursor of the next page; undefined on the last page. */
  readonly next: string | undefined;
  /** How many entries of the list were looked at for this page and those before it. */
  readonly looked: number;
}

/** Which page of a list is wanted. */
interface PageWanted {
  readonly cursor: string | undefined;
  readonly limit: number;
  /** How long it may take (ms): then it has what was found so far. Defaults to a second. */
  readonly maxTime?: number;
}

interface OpenReading {
  /** The name of the list: cursors of one list are refused for another. */
  readonly list: string;
  readonly reading: PagedReading<unknown>;
  usedAt: number;
}

/** The most readings open at once. Beyond that the least recently used one is closed. */
const MAX_OPEN = 32;

/** How long an unused reading stays open (ms). */
const MAX_IDLE = 10 * 60_000;

/**
 * The readings that users page through. A cursor names a reading and a position in it. It is valid in this process
 * only, and while the reading is open.
 */
export class Readings {
  readonly #open = new Map<string, OpenReading>();

  /**
   * Returns a page of a list: the first, or the one at `cursor`. `read` starts the list; see {@link PagedReading} for what
   * it yields. Its signal aborts when the reading is closed.
   *
   * @throws {HttpError} 410 if the cursor is no longer valid.
   */
  async page<Item>(
    list: string,
    { cursor, limit, maxTime = MAX_TIME }: PageWanted,
    read: (signal: AbortSignal) => AsyncGenerator<Item | undefined, void, void>,
  ): Promise<Page<Item>> {
    const [id = "", position = "0"] =
      cursor === undefined ? [this.#start(list, read)] : cursor.split(".");
    this.#sweep();
    const open = this.#open.get(id);
    if (open === undefined || open.list !== list || !/^\d{1,15}$/.test(position)) throw gone();
    // Keeps the map in the order of use, the most recent last.
    this.#open.delete(id);
    this.#open.set(id, open);
    open.usedAt = Date.now();
    try {
      const slice = await (open.reading as PagedReading<Item>).slice(
        Number(position),
        limit,
        maxTime,
      );
      if (slice === undefined) throw gone();
      const { items, next } = slice;
      // The first page is also the last: no request will continue, or page back to it.
      if (next === undefined && position === "0") this.#close(id);
      const { looked } = open.reading;
      return { items, next: next === undefined ? undefined : `${id}.${next}`, looked };
    } catch (error) {
      this.#close(id);
      throw error;
    }
  }

  close(): void {
    for (const id of this.#open.keys()) this.#close(id);
  }

  #start(list: string, read: (signal: AbortSignal) => AsyncGenerator<unknown, void, void>): string {
    const id = randomBytes(9).toString("base64url");
    const stop = new AbortController();
    // Each running call adds a listener.
    setMaxListeners(0, stop.signal);
    const reading = new PagedReading(read(stop.signal), stop);
    this.#open.set(id, { list, reading, usedAt: Date.now() });
    return id;
  }

  #sweep(): void {
    for (const [id, { usedAt }] of this.#open) {
      if (this.#open.size > MAX_OPEN || Date.now() - usedAt > MAX_IDLE) this.#close(id);
    }
  }

  #close(id: string): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    // A step that is still running may fail. It is not awaited.
    void open?.reading.close().catch(() => {});
  }
}

function gone(): HttpError {
  return new HttpError(410, "this page of the list has expired: start again at the first page");
}

/** Some items of a reading, and the position behind them. */
interface Slice<Item> {
  readonly items: readonly Item[];
  /** The position of the next slice; undefined if this is the last. */
  readonly next: number | undefined;
}

/** How many items are kept, for paging back. */
const MAX_KEPT = 1000;

/** How long one slice may take (ms). After that the slice has what was found so far. */
const MAX_TIME = 1000;

/**
 * Reads a source slice by slice, while a user pages through it. Continues where it stopped, and keeps what it read, so
 * that paging back shows the same items.
 */
export class PagedReading<Item> {
  readonly #source: AsyncGenerator<Item | undefined, void, void>;
  readonly #stop: AbortController;
  /** The items that are kept, from position `#dropped` on. */
  readonly #items: Item[] = [];
  #dropped = 0;
  /** The next item, if an earlier slice ran out of time while it was being read. */
  #coming: Promise<IteratorResult<Item | undefined, void>> | undefined;
  #isAtEnd = false;
  /** How many values the source has yielded. */
  #looked = 0;
  /** Settles when the latest slice has: slices are read one after another. */
  #latest: Promise<unknown> = Promise.resolve();

  /**
   * The source yields undefined after each step of a search, so that the reading can stop there when time is up.
   * Otherwise a search that finds nothing would run to its end. `stop` aborts the running step.
   */
  constructor(
    source: AsyncGenerator<Item | undefined, void, void>,
    stop: AbortController = new AbortController(),
  ) {
    this.#source = source;
    this.#stop = stop;
  }

  /**
   * Returns at most `limit` items from position `from` on. A search that finds little returns fewer, or none, before
   * its end. Returns undefined if the items are no longer kept.
   */
  async slice(from: number, limit: number, maxTime = MAX_TIME): Promise<Slice<Item> | undefined> {
    const slicing = this.#latest.then(() => this.#slice(from, limit, maxTime));
    this.#latest = slicing.catch(() => {});
    return await slicing;
  }

  /** How many steps the search has made, whether they found something or not. */
  get looked(): number {
    return this.#looked;
  }

  /** Stops reading, and ends the source. */
  async close(): Promise<void> {
    void this.#coming?.catch(() => {});
    this.#stop.abort();
    await this.#source.return();
  }

  async #slice(from: number, limit: number, maxTime: number): Promise<Slice<Item> | undefined> {
    if (from < this.#dropped || from > this.#end) return undefined;
    await this.#readTo(from + limit + 1, maxTime);
    const items = this.#items.slice(from - this.#dropped, from - this.#dropped + limit);
    const next = from + items.length;
    const surplus = this.#items.length - MAX_KEPT;
    if (surplus > 0) {
      this.#items.splice(0, surplus);
      this.#dropped += surplus;
    }
    return { items, next: next < this.#end || !this.#isAtEnd ? next : undefined };
  }

  get #end(): number {
    return this.#dropped + this.#items.length;
  }

  /** Reads on until position `end`, or until time is up. */
  async #readTo(end: number, maxTime: number): Promise<void> {
    const { promise: late, cancel } = after(maxTime);
    const until = networkTime.now() + maxTime;
    try {
      while (this.#end < end && !this.#isAtEnd && networkTime.now() < until) {
        this.#coming ??= this.#source.next();
        const found = await Promise.race([this.#coming, late]);
        if (found === undefined) return;
        this.#coming = undefined;
        if (found.done === true) {
          this.#isAtEnd = true;
          return;
        }
        this.#looked++;
        if (found.value !== undefined) this.#items.push(found.value);
      }
    } finally {
      cancel();
    }
  }
}

function after(milliseconds: number): { promise: Promise<undefined>; cancel: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const promise = new Promise<undefined>((resolve) => {
    timer = networkTime.setTimeout(() => resolve(undefined), milliseconds);
  });
  return { promise, cancel: () => networkTime.clearTimeout(timer) };
}
