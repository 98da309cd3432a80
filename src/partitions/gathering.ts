import { ClosedError } from "../errors.ts";
import { Waiters, type WaitOptions } from "../queue/waiters.ts";
import { grouped } from "./grouped.ts";

/** Where messages can be waited for, such as one partition. */
export interface GatheringSource<Item> {
  /** Waits for messages, `max` at most; rejects if Redis refuses, or when it is closed. */
  wait(max: number, options: WaitOptions): Promise<readonly Item[]>;
  /** Gives back what nobody took. */
  putBack(items: readonly Item[]): void;
}

/**
 * Takes messages for all who wait for them in this process, from several sources at once.
 *
 * While anybody waits, every source is waited for. What comes is given to whoever has waited longest. When nobody waits any
 * more the waits are ended, a moment later: handlers are often done within a few milliseconds, and to end a wait and
 * begin it again costs several commands. What a source brings for nobody is kept for that moment, and then goes back.
 */
export class Gathering<Item> {
  readonly #waiters: Waiters<Item>;
  readonly #waits = new Map<GatheringSource<Item>, Wait>();
  #sources: readonly GatheringSource<Item>[] = [];
  #lingering: NodeJS.Timeout | undefined;
  /** What has come while nobody waited. */
  #left: readonly Left<Item>[] = [];

  /** `queue` is what errors call it. */
  constructor(queue: string) {
    this.#waiters = new Waiters(queue, {
      isConnected: () => true,
      onChange: () => this.#onChange(),
    });
  }

  /** See {@link Waiters.wait}. */
  wait(max: number, options: WaitOptions): Promise<readonly Item[]> {
    return this.#waiters.wait(max, options);
  }

  /**
   * From now on these are waited for. Resolves when nothing is in hand any more of those that were waited for before
   * and are not among them; what they bring until then is handed out, or goes back. Never rejects.
   */
  async setSources(sources: readonly GatheringSource<Item>[]): Promise<void> {
    this.#sources = sources;
    this.#giveBack(({ source }) => !sources.includes(source));
    const former = [...this.#waits].filter(([source]) => !sources.includes(source));
    for (const [, wait] of former) wait.abort();
    this.#onChange();
    await Promise.all(former.map(([, { ended }]) => ended));
  }

  /** Ends every wait with a `ClosedError`; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
    this.#waiters.close();
    this.#stop();
    await Promise.all(Array.from(this.#waits.values(), ({ ended }) => ended));
  }

  #onChange(): void {
    if (this.#waiters.waitingCount > 0) {
      clearTimeout(this.#lingering);
      this.#lingering = undefined;
      this.#handOut();
      for (const source of this.#sources) {
        if (this.#waiters.waitingCount > 0 && !this.#waits.has(source)) this.#start(source);
      }
    }
    // Also if what was left has just served the last one.
    if (this.#waiters.waitingCount > 0) return;
    this.#lingering ??= setTimeout(() => this.#stop(), LINGER);
    if (this.#waits.size === 0) this.#waiters.dismissExpired();
  }

  /** Nobody has waited for a moment. */
  #stop(): void {
    clearTimeout(this.#lingering);
    this.#lingering = undefined;
    for (const wait of this.#waits.values()) wait.abort();
    this.#giveBack(() => true);
  }

  #handOut(): void {
    while (this.#waiters.waitingCount > 0) {
      const [first, ...others] = this.#left;
      if (first === undefined || this.#waiters.give([first.item]).length > 0) return;
      this.#left = others;
    }
  }

  /** Gives back of what is left what goes. Of each source it goes back in the order in which it came. */
  #giveBack(goes: (left: Left<Item>) => boolean): void {
    const going = this.#left.filter(goes);
    this.#left = this.#left.filter((left) => !goes(left));
    for (const [source, some] of grouped(going, (left) => left.source)) {
      source.putBack(some.map(({ item }) => item));
    }
  }

  #start(source: GatheringSource<Item>): void {
    const stopping = new AbortController();
    const ended = this.#waitFor(source, stopping.signal).finally(() => {
      this.#waits.delete(source);
      // Somebody may wait still, or may have come while it was being ended.
      if (!this.#waiters.isClosed) this.#onChange();
    });
    this.#waits.set(source, { ended, abort: () => stopping.abort() });
  }

  /** Waits for one source once. Never rejects. */
  async #waitFor(source: GatheringSource<Item>, signal: AbortSignal): Promise<void> {
    try {
      const wanted = this.#waiters.wanted.reduce((sum, max) => sum + max, 0);
      const share = Math.ceil(wanted / this.#sources.length);
      const items = await source.wait(share, { signal, timeout: Infinity });
      const left = this.#waiters.give(items);
      // Nothing more is fetched until somebody waits. Other sources are waited for a moment longer.
      if (!signal.aborted) this.#left = [...this.#left, ...left.map((item) => ({ item, source }))];
      else if (left.length > 0) source.putBack(left);
    } catch (error) {
      if (signal.aborted) return;
      // It would be closed the next time, too.
      if (error instanceof ClosedError)
        this.#sources = this.#sources.filter((one) => one !== source);
      else this.#waiters.failAll(error);
    }
  }
}

interface Wait {
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly abort: () => void;
}

interface Left<Item> {
  readonly item: Item;
  readonly source: GatheringSource<Item>;
}

/** Milliseconds for which the sources are waited for once nobody waits. */
const LINGER = 5;
