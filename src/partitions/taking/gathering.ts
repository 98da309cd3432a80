import { ClosedError, RedisError } from "../../errors.ts";
import { Waiters, type WaitOptions } from "../../queue/consuming/waiters.ts";
import type { Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import { grouped } from "../ring/grouped.ts";

/** Where messages can be waited for, such as one partition. */
export interface GatheringSource<Item> {
  /** How the waits get on, while there are other sources. */
  readonly work: Work;
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
 * That source is asked before the others when somebody waits again. Otherwise the one that replies soonest would be
 * served every time.
 *
 * A source that fails is tried again after a growing pause, and the others are waited for meanwhile. Only if all
 * fail, those who wait are told.
 */
export class Gathering<Item> {
  readonly #waiters: Waiters<Item>;
  readonly #waits = new Map<GatheringSource<Item>, Wait>();
  #sources: readonly GatheringSource<Item>[] = [];
  #lingering: NodeJS.Timeout | undefined;
  /** What has come while nobody waited. */
  #left: readonly Left<Item>[] = [];
  /** Where something went back to; the first comes first. */
  readonly #owed = new Set<GatheringSource<Item>>();
  #isServingOwed = false;
  /** Whether somebody has looked into all sources. */
  #hasLooked = false;
  /** Those that have failed, and have not succeeded since. */
  readonly #failing = new Map<GatheringSource<Item>, { readonly pause: Pause; until: number }>();

  /** `queue` is what errors call it. */
  constructor(queue: string) {
    this.#waiters = new Waiters(queue, {
      isConnected: () => true,
      onChange: () => this.#onChange(),
    });
  }

  /**
   * Waits for messages as {@link Waiters.wait} does. Who comes first may find that no connection is open yet, and its
   * time may be over before one is: so it looks once into all sources, however long that takes.
   */
  async take(max: number, { signal, timeout }: WaitOptions): Promise<readonly Item[]> {
    const startedAt = performance.now();
    if (!this.#hasLooked && timeout < Infinity) {
      this.#hasLooked = true;
      // What is refused is found again by the wait.
      const found = await this.look(max, this.#sources, signal).catch(() => []);
      signal?.throwIfAborted();
      if (found.length > 0) return found;
    }
    const left = Math.max(0, timeout - (performance.now() - startedAt));
    return await this.wait(max, { signal, timeout: left });
  }

  /** See {@link Waiters.wait}. */
  wait(max: number, options: WaitOptions): Promise<readonly Item[]> {
    return this.#waiters.wait(max, options);
  }

  /**
   * Looks once into one source after another; returns what the first has that has any.
   *
   * @throws what the first has rejected with, if none has any and one has failed.
   */
  async look(
    max: number,
    sources: readonly GatheringSource<Item>[],
    signal?: AbortSignal,
  ): Promise<readonly Item[]> {
    let failure: unknown;
    for (const source of sources) {
      try {
        const items = await source.wait(max, { signal, timeout: 0 });
        if (items.length > 0) return items;
      } catch (error) {
        signal?.throwIfAborted();
        failure ??= error;
      }
    }
    // What one rejects with is an error of ours.
    // oxlint-disable-next-line typescript/only-throw-error
    if (failure !== undefined) throw failure;
    return [];
  }

  /**
   * From now on these are waited for. Resolves when nothing is in hand any more of those that were waited for before
   * and are not among them; what they bring until then is handed out, or goes back. Never rejects.
   */
  async setSources(sources: readonly GatheringSource<Item>[]): Promise<void> {
    this.#sources = sources;
    this.#giveBack(({ source }) => !sources.includes(source));
    for (const source of this.#owed) if (!sources.includes(source)) this.#owed.delete(source);
    for (const source of this.#failing.keys()) {
      if (sources.includes(source)) continue;
      this.#failing.delete(source);
      source.work.ended();
    }
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
      this.#waitForAll();
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
      this.#putBack(
        source,
        some.map(({ item }) => item),
      );
    }
  }

  #putBack(source: GatheringSource<Item>, items: readonly Item[]): void {
    source.putBack(items);
    if (this.#sources.includes(source)) this.#owed.add(source);
  }

  #waitForAll(): void {
    if (this.#owed.size > 0 && !this.#isServingOwed) void this.#serveOwed();
    if (this.#isServingOwed) return;
    for (const source of this.#sources) {
      if (this.#waiters.waitingCount > 0 && !this.#waits.has(source))
        void this.#start(source, Infinity);
    }
  }

  /** Asks one by one where something went back to, without a block, and then waits for all. Never rejects. */
  async #serveOwed(): Promise<void> {
    this.#isServingOwed = true;
    while (this.#waiters.waitingCount > 0) {
      const [source] = this.#owed;
      if (source === undefined) break;
      this.#owed.delete(source);
      if (this.#waits.has(source) || this.#failing.has(source)) continue;
      // Nobody waits long for one that does not reply.
      await Promise.race([this.#start(source, 0), sleep(LATE)]);
    }
    this.#isServingOwed = false;
    if (this.#waiters.waitingCount > 0) this.#onChange();
  }

  /** Waits for a source once, for `timeout` milliseconds at most. Resolves at the end. */
  #start(source: GatheringSource<Item>, timeout: number): Promise<void> {
    const stopping = new AbortController();
    const ended = this.#waitFor(source, stopping.signal, timeout).finally(() => {
      this.#waits.delete(source);
      if (stopping.signal.aborted && this.#failing.has(source)) source.work.stopped();
      // Somebody may wait still, or may have come while it was being ended.
      if (!this.#waiters.isClosed) this.#onChange();
    });
    this.#waits.set(source, { ended, abort: () => stopping.abort() });
    return ended;
  }

  /** Never rejects. */
  async #waitFor(
    source: GatheringSource<Item>,
    signal: AbortSignal,
    timeout: number,
  ): Promise<void> {
    try {
      const failure = this.#failing.get(source);
      if (failure !== undefined && !this.#areAllFailing) {
        await sleep(failure.until - performance.now(), signal);
      }
      if (signal.aborted) return;
      const wanted = this.#waiters.wanted.reduce((sum, max) => sum + max, 0);
      const share = Math.max(1, Math.ceil(wanted / this.#sources.length));
      const items = await source.wait(share, { signal, timeout });
      if (this.#failing.delete(source)) source.work.succeeded();
      const left = this.#waiters.give(items);
      // Nothing more is fetched until somebody waits. Other sources are waited for a moment longer.
      if (!signal.aborted) this.#left = [...this.#left, ...left.map((item) => ({ item, source }))];
      else if (left.length > 0) this.#putBack(source, left);
    } catch (error) {
      if (!signal.aborted && !this.#waiters.isClosed) this.#onFailure(source, error);
    }
  }

  #onFailure(source: GatheringSource<Item>, error: unknown): void {
    if (error instanceof ClosedError) {
      // It would be closed the next time, too.
      this.#sources = this.#sources.filter((one) => one !== source);
      return;
    }
    const { pause } = this.#failing.get(source) ?? { pause: new Pause(100, 1000) };
    this.#failing.set(source, { pause, until: performance.now() + pause.take() });
    if (this.#areAllFailing || !(error instanceof RedisError)) this.#waiters.failAll(error);
    else source.work.failed(error);
  }

  get #areAllFailing(): boolean {
    return this.#sources.every((source) => this.#failing.has(source));
  }
}

/** Resolves after so many milliseconds, or when the signal is aborted. */
function sleep(length: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, length);
    signal?.addEventListener("abort", end);
  });
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

/** Milliseconds after which others are asked, too. */
const LATE = 20;
