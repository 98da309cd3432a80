import { setTimeout as sleep } from "node:timers/promises";
import { Waiters, type WaitOptions } from "../queue/waiters.ts";
import { ClosedError, RedisError } from "../errors.ts";
import type { Work } from "../redis/troubles.ts";
import { Pause } from "../time/pause.ts";

/** Where messages can be waited for, such as one partition. */
export interface GatheringSource<Item> {
  /** Is told that it cannot be taken from, while others can. */
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
 * begin it again costs several commands. What a source brings for nobody goes back to it. Then that source is asked
 * before the others when somebody waits again. Otherwise the one that replies soonest would be served every time.
 *
 * A source that fails is tried again after a growing pause, and the others are waited for meanwhile. Only if all
 * fail, those who wait are told.
 */
export class Gathering<Item> {
  readonly #waiters: Waiters<Item>;
  readonly #pumps = new Map<GatheringSource<Item>, Pump>();
  #sources: readonly GatheringSource<Item>[] = [];
  #lingering: NodeJS.Timeout | undefined;
  /** What has come while nobody waited. */
  readonly #left: { readonly item: Item; readonly source: GatheringSource<Item> }[] = [];
  /** Where something went back to; the first comes first. */
  readonly #owed = new Set<GatheringSource<Item>>();
  #isServingOwed = false;
  /** Those that have failed, and have not succeeded since. */
  readonly #failing = new Map<GatheringSource<Item>, { readonly pause: Pause; until: number }>();
  #isClosed = false;

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

  /** From now on these are waited for. What the others bring that were before is still handed out. */
  setSources(sources: readonly GatheringSource<Item>[]): void {
    this.#sources = sources;
    for (const [source, pump] of this.#pumps) if (!sources.includes(source)) pump.abort();
    for (const known of [this.#owed, this.#failing]) {
      for (const source of known.keys()) if (!sources.includes(source)) known.delete(source);
    }
    this.#onChange();
  }

  /** Ends every wait with a `ClosedError`; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#waiters.close();
    this.#stop();
    await Promise.all(Array.from(this.#pumps.values(), ({ ended }) => ended));
  }

  #onChange(): void {
    if (this.#waiters.waitingCount === 0) {
      this.#lingering ??= setTimeout(() => this.#stop(), LINGER);
      if (this.#pumps.size === 0) this.#waiters.dismissExpired();
      return;
    }
    clearTimeout(this.#lingering);
    this.#lingering = undefined;
    this.#handOut();
    if (this.#owed.size > 0 && !this.#isServingOwed) void this.#serveOwed();
    if (this.#isServingOwed) return;
    for (const source of this.#sources) {
      if (this.#waiters.waitingCount > 0 && !this.#pumps.has(source))
        void this.#start(source, Infinity);
    }
  }

  /** Nobody has waited for a moment. */
  #stop(): void {
    clearTimeout(this.#lingering);
    this.#lingering = undefined;
    for (const pump of this.#pumps.values()) pump.abort();
    for (const { item, source } of this.#left.splice(0)) this.#putBack(source, [item]);
  }

  #putBack(source: GatheringSource<Item>, items: readonly Item[]): void {
    source.putBack(items);
    if (this.#sources.includes(source)) this.#owed.add(source);
  }

  #handOut(): void {
    while (this.#left.length > 0 && this.#waiters.waitingCount > 0) {
      const [first] = this.#left;
      if (first === undefined || this.#waiters.give([first.item]).length > 0) return;
      this.#left.shift();
    }
  }

  /** Asks one by one where something went back to, without a block, and then waits for all. Never rejects. */
  async #serveOwed(): Promise<void> {
    this.#isServingOwed = true;
    while (this.#waiters.waitingCount > 0) {
      const [source] = this.#owed;
      if (source === undefined) break;
      this.#owed.delete(source);
      if (this.#pumps.has(source) || this.#failing.has(source)) continue;
      // Nobody waits long for one that does not reply.
      await Promise.race([this.#start(source, 0), sleep(LATE)]);
    }
    this.#isServingOwed = false;
    if (this.#waiters.waitingCount > 0) this.#onChange();
  }

  /** Waits for a source: once for `timeout` milliseconds, or as long as anybody waits. Resolves at the end. */
  #start(source: GatheringSource<Item>, timeout: number): Promise<void> {
    const stopping = new AbortController();
    const ended = this.#pump(source, stopping.signal, timeout).finally(() => {
      this.#pumps.delete(source);
      if (this.#failing.has(source)) source.work.stopped();
      if (this.#pumps.size === 0) this.#waiters.dismissExpired();
      // Somebody may have come while it was being ended.
      if (this.#waiters.waitingCount > 0 && !this.#isClosed) this.#onChange();
    });
    this.#pumps.set(source, { ended, abort: () => stopping.abort() });
    return ended;
  }

  /** Never rejects. */
  async #pump(source: GatheringSource<Item>, signal: AbortSignal, timeout: number): Promise<void> {
    while (!signal.aborted) {
      try {
        const { until = 0 } = this.#failing.get(source) ?? {};
        if (!this.#areAllFailing) await paused(until - performance.now(), signal);
        if (signal.aborted) return;
        const wanted = this.#waiters.wanted.reduce((sum, max) => sum + max, 0);
        const share = Math.max(1, Math.ceil(wanted / Math.max(1, this.#sources.length)));
        const items = await source.wait(share, { signal, timeout });
        if (this.#failing.delete(source)) source.work.succeeded();
        const left = this.#waiters.give(items);
        if (signal.aborted && left.length > 0) this.#putBack(source, left);
        else this.#left.push(...left.map((item) => ({ item, source })));
        if (this.#waiters.waitingCount > 0 && timeout > 0) continue;
        // Nothing more is fetched until somebody waits. Other sources are waited for a moment longer.
        this.#onChange();
        return;
      } catch (error) {
        if (signal.aborted || this.#isClosed) return;
        this.#onFailure(source, error);
      }
    }
  }

  #onFailure(source: GatheringSource<Item>, error: unknown): void {
    const { pause } = this.#failing.get(source) ?? { pause: new Pause(100, 1000) };
    this.#failing.set(source, { pause, until: performance.now() + pause.take() });
    // A source that is closed is about to be taken away.
    if (error instanceof ClosedError) return;
    if (this.#areAllFailing || !(error instanceof RedisError)) this.#waiters.failAll(error);
    else source.work.failed(error);
  }

  get #areAllFailing(): boolean {
    return this.#sources.every((source) => this.#failing.has(source));
  }
}

/** Waits for so many milliseconds, or until the signal is aborted. */
async function paused(length: number, signal: AbortSignal): Promise<void> {
  if (length > 0) await sleep(length, undefined, { signal }).catch(() => {});
}

interface Pump {
  /** Resolves when it waits no more. Never rejects. */
  readonly ended: Promise<void>;
  readonly abort: () => void;
}

/** Milliseconds for which the sources are waited for once nobody waits. */
const LINGER = 5;

/** Milliseconds after which others are asked, too. */
const LATE = 20;
