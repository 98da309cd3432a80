import { checkFollows } from "../../run/modes.ts";
import { ClosedError, RedisError } from "../../errors.ts";
import { grouped } from "../../queue/grouped.ts";
import { Waiters, type WaitOptions } from "../../run/waiters.ts";
import type { Work } from "../../redis/troubles.ts";
import { Pause } from "../../time/pause.ts";
import { sleepForNetwork } from "../../time/sleep.ts";
import { networkTime, queueTime } from "../../time/runtime.ts";

/** Where messages can be waited for: a partition, or the LISTs of a server. */
export interface GatheringSource<Item> {
  /** Health of the waits, reported while other sources still work. */
  readonly work: Work;
  /** Waits for messages, `max` at most. Rejects if Redis refuses, and once the source is closed. */
  wait(max: number, options: WaitOptions): Promise<readonly Item[]>;
  /** Gives back messages that no waiter took. */
  putBack(items: readonly Item[]): void;
}

/**
 * Takes messages from several sources at once, for all calls of this process that wait for them.
 *
 * While a call waits, the gathering waits at every source. Incoming messages go to the oldest call. It is
 * always in exactly one mode:
 *
 * - **idle**: no call waits, and nothing is waited for at the sources. A call → *asking*, or → *blocking* if no source
 *   is owed anything.
 * - **asking**: the sources that got messages back are asked before the others, one by one, without blocking. Otherwise
 *   the source that replies first would be served every time. All were asked, or no call waits → *blocking*.
 * - **blocking**: it waits at all sources. The last call leaves → *lingering*. A source got messages back → *asking*.
 * - **lingering**: no call waits, but the waits at the sources go on for a few milliseconds: handlers are often done by
 *   then, and ending a wait and starting it again costs several commands. Messages that arrive are kept as leftovers.
 *   A call, unless the leftovers serve it → *asking* or *blocking*. The time is over → *idle*; the leftovers go back.
 * - **closed**: nothing follows.
 *
 * A source that fails is tried again after a growing pause, while the waits at the others go on. Calls only reject if
 * all sources fail.
 */
export class Gathering<Item> {
  readonly #waiters: Waiters<Item>;
  readonly #waits = new Map<GatheringSource<Item>, Wait>();
  #sources: readonly GatheringSource<Item>[] = [];
  #mode: Mode = "idle";
  #lingering: NodeJS.Timeout | undefined;
  /** Messages that came while no call waited. */
  #leftovers: readonly Leftover<Item>[] = [];
  /** Sources that got leftovers back, in that order. */
  readonly #owed = new Set<GatheringSource<Item>>();
  /** Whether a call has looked into all sources. */
  #hasLooked = false;
  /** Sources that have failed and have not succeeded since. */
  readonly #failing = new Map<GatheringSource<Item>, { readonly pause: Pause; until: number }>();

  /** `queue` is the name of the queue in error messages. */
  constructor(queue: string) {
    this.#waiters = new Waiters(queue, {
      isConnected: () => true,
      onChange: () => this.#onChange(),
    });
  }

  /**
   * Waits for messages as {@link Waiters.wait} does. The first call with a timeout looks into all sources once, however
   * long that takes: its connections may take longer to open than its timeout allows.
   */
  async take(max: number, { signal, timeout }: WaitOptions): Promise<readonly Item[]> {
    const startedAt = queueTime.now();
    if (!this.#hasLooked && timeout < Infinity) {
      this.#hasLooked = true;
      // The wait below meets the same refusal and reports it.
      const found = await this.look(max, this.#sources, signal).catch(() => []);
      signal?.throwIfAborted();
      if (found.length > 0) return found;
    }
    const left = Math.max(0, timeout - (queueTime.now() - startedAt));
    return await this.wait(max, { signal, timeout: left });
  }

  /** See {@link Waiters.wait}. */
  wait(max: number, options: WaitOptions): Promise<readonly Item[]> {
    return this.#waiters.wait(max, options);
  }

  /**
   * Looks once into one source after another; returns the messages of the first that has any.
   *
   * @throws the error of the first source that failed, if none has a message.
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
        // A closed source in an open gathering has been removed.
        if (error instanceof ClosedError && !this.#waiters.isClosed) continue;
        failure ??= error;
      }
    }
    // A source only rejects with Delayline errors.
    // oxlint-disable-next-line typescript/only-throw-error
    if (failure !== undefined) throw failure;
    return [];
  }

  /**
   * Replaces the set of sources. Resolves once no message of a removed source is left here: messages that it still
   * delivers are handed out or given back. Never rejects.
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

  /** Ends every wait with a `ClosedError`; resolves once no message is left here. */
  async close(): Promise<void> {
    if (this.#mode !== "closed") this.#enter("closed");
    this.#waiters.close();
    this.#endWaits();
    await Promise.all(Array.from(this.#waits.values(), ({ ended }) => ended));
  }

  /** Sets the mode. Nothing else does. */
  #enter(mode: Mode): void {
    checkFollows<Mode>(NEXT, this.#mode, mode);
    this.#mode = mode;
  }

  #onChange(): void {
    if (this.#mode === "closed") return;
    if (this.#waiters.pendingCount > 0) {
      networkTime.clearTimeout(this.#lingering);
      this.#lingering = undefined;
      this.#handOut();
    }
    // While it asks, whoever is asked next decides.
    if (this.#mode === "asking") return;
    // Not an else: the leftovers may just have served the last call.
    if (this.#waiters.pendingCount > 0) this.#waitForAll();
    else this.#linger();
  }

  #linger(): void {
    if (this.#mode === "blocking") this.#enter("lingering");
    if (this.#mode === "lingering") {
      this.#lingering ??= networkTime.setTimeout(() => {
        this.#enter("idle");
        this.#endWaits();
      }, LINGER);
    }
    if (this.#waits.size === 0) this.#waiters.dismissExpired();
  }

  /** Ends the waits at the sources, and gives the leftovers back. */
  #endWaits(): void {
    networkTime.clearTimeout(this.#lingering);
    this.#lingering = undefined;
    for (const wait of this.#waits.values()) wait.abort();
    this.#giveBack(() => true);
  }

  #handOut(): void {
    const left = this.#waiters.give(this.#leftovers.map(({ item }) => item)).length;
    this.#leftovers = this.#leftovers.slice(this.#leftovers.length - left);
  }

  /** Gives some of the leftovers back, to each source in the order in which they came. */
  #giveBack(shouldReturn: (leftover: Leftover<Item>) => boolean): void {
    const returned = this.#leftovers.filter(shouldReturn);
    this.#leftovers = this.#leftovers.filter((leftover) => !shouldReturn(leftover));
    for (const [source, some] of grouped(returned, (leftover) => leftover.source)) {
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
    if (this.#owed.size > 0) {
      this.#enter("asking");
      void this.#askOwed();
      return;
    }
    if (this.#mode !== "blocking") this.#enter("blocking");
    for (const source of this.#sources) {
      if (this.#waiters.pendingCount > 0 && !this.#waits.has(source)) {
        void this.#start(source, Infinity);
      }
    }
  }

  /** Asks the owed sources one by one, without blocking, and then waits at all sources. Never rejects. */
  async #askOwed(): Promise<void> {
    while (this.#waiters.pendingCount > 0) {
      const [source] = this.#owed;
      if (source === undefined) break;
      this.#owed.delete(source);
      if (this.#waits.has(source) || this.#failing.has(source)) continue;
      // Do not let a source that is slow to reply hold up the others.
      await Promise.race([this.#start(source, 0), sleepForNetwork(LATE)]);
    }
    if (this.#mode !== "asking") return;
    this.#enter("blocking");
    this.#onChange();
  }

  /** Waits at a source once, for `timeout` milliseconds at most. Never rejects. */
  #start(source: GatheringSource<Item>, timeout: number): Promise<void> {
    const stopping = new AbortController();
    const ended = this.#waitFor(source, stopping.signal, timeout).finally(() => {
      this.#waits.delete(source);
      if (stopping.signal.aborted && this.#failing.has(source)) source.work.stopped();
      // Calls may still wait, or may have come while this wait was being ended.
      if (!this.#waiters.isClosed) this.#onChange();
    });
    this.#waits.set(source, { ended, abort: () => stopping.abort() });
    return ended;
  }

  async #waitFor(
    source: GatheringSource<Item>,
    signal: AbortSignal,
    timeout: number,
  ): Promise<void> {
    try {
      const failure = this.#failing.get(source);
      if (failure !== undefined && !this.#areAllFailing) {
        await sleepForNetwork(failure.until - networkTime.now(), signal);
      }
      if (signal.aborted) return;
      const wanted = this.#waiters.wanted.reduce((sum, max) => sum + max, 0);
      const share = Math.max(1, Math.ceil(wanted / this.#sources.length));
      const items = await source.wait(share, { signal, timeout });
      if (this.#failing.delete(source)) source.work.succeeded();
      const rest = this.#waiters.give(items);
      if (!signal.aborted) {
        this.#leftovers = [...this.#leftovers, ...rest.map((item) => ({ item, source }))];
      } else if (rest.length > 0) {
        this.#putBack(source, rest);
      }
    } catch (error) {
      if (!signal.aborted && !this.#waiters.isClosed) this.#onFailure(source, error);
    }
  }

  #onFailure(source: GatheringSource<Item>, error: unknown): void {
    if (error instanceof ClosedError) {
      // A closed source stays closed.
      this.#sources = this.#sources.filter((other) => other !== source);
      return;
    }
    const { pause } = this.#failing.get(source) ?? { pause: new Pause(100, 1000) };
    this.#failing.set(source, { pause, until: networkTime.now() + pause.take() });
    if (this.#areAllFailing || !(error instanceof RedisError)) this.#waiters.failAll(error);
    else source.work.failed(error);
  }

  get #areAllFailing(): boolean {
    return this.#sources.every((source) => this.#failing.has(source));
  }
}

/** The modes of a {@link Gathering}, each with the modes that may follow it. */
const NEXT = {
  idle: ["asking", "blocking", "closed"],
  asking: ["blocking", "closed"],
  blocking: ["asking", "lingering", "closed"],
  lingering: ["idle", "asking", "blocking", "closed"],
  closed: [],
} as const;

type Mode = keyof typeof NEXT;

interface Wait {
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly abort: () => void;
}

interface Leftover<Item> {
  readonly item: Item;
  readonly source: GatheringSource<Item>;
}

/** Milliseconds for which the waits at the sources go on once no call waits. */
const LINGER = 5;

/** Milliseconds to wait for an owed source before the next one is asked as well. */
const LATE = 20;
