import { Waiters, type WaitOptions } from "../queue/waiters.ts";
import { ClosedError } from "../errors.ts";

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
 * begin it again costs several commands. What a source brings for nobody goes back to it.
 */
export class Gathering<Item> {
  readonly #waiters: Waiters<Item>;
  readonly #pumps = new Map<GatheringSource<Item>, Pump>();
  #sources: readonly GatheringSource<Item>[] = [];
  #lingering: NodeJS.Timeout | undefined;
  /** What has come while nobody waited. */
  readonly #left: { readonly item: Item; readonly source: GatheringSource<Item> }[] = [];

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
    this.#onChange();
  }

  /** Ends every wait with a `ClosedError`; resolves when nothing is in hand any more. */
  async close(): Promise<void> {
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
    for (const source of this.#sources) {
      if (this.#waiters.waitingCount > 0 && !this.#pumps.has(source)) this.#start(source);
    }
  }

  /** Nobody has waited for a moment. */
  #stop(): void {
    clearTimeout(this.#lingering);
    this.#lingering = undefined;
    for (const pump of this.#pumps.values()) pump.abort();
    for (const { item, source } of this.#left.splice(0)) source.putBack([item]);
  }

  #handOut(): void {
    while (this.#left.length > 0 && this.#waiters.waitingCount > 0) {
      const [first] = this.#left;
      if (first === undefined || this.#waiters.give([first.item]).length > 0) return;
      this.#left.shift();
    }
  }

  #start(source: GatheringSource<Item>): void {
    const stopping = new AbortController();
    const ended = this.#pump(source, stopping.signal).finally(() => {
      this.#pumps.delete(source);
      if (this.#pumps.size === 0) this.#waiters.dismissExpired();
      // Somebody may have come while it was being ended.
      if (this.#waiters.waitingCount > 0) this.#onChange();
    });
    this.#pumps.set(source, { ended, abort: () => stopping.abort() });
  }

  /** Waits for one source, as long as anybody waits for messages. Never rejects. */
  async #pump(source: GatheringSource<Item>, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const wanted = this.#waiters.wanted.reduce((sum, max) => sum + max, 0);
        const share = Math.max(1, Math.ceil(wanted / Math.max(1, this.#sources.length)));
        const items = await source.wait(share, { signal, timeout: Infinity });
        const left = this.#waiters.give(items);
        if (signal.aborted && left.length > 0) source.putBack(left);
        else this.#left.push(...left.map((item) => ({ item, source })));
        if (this.#waiters.waitingCount > 0) continue;
        // Nothing more is fetched until somebody waits. Other sources are waited for a moment longer.
        this.#onChange();
        return;
      } catch (error) {
        if (signal.aborted || error instanceof ClosedError) return;
        this.#waiters.failAll(error);
        return;
      }
    }
  }
}

interface Pump {
  /** Resolves when it waits no more. Never rejects. */
  readonly ended: Promise<void>;
  readonly abort: () => void;
}

/** Milliseconds for which the sources are waited for once nobody waits. */
const LINGER = 5;
