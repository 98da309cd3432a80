import { setMaxListeners } from "node:events";
import type { Delayline } from "../../client/delayline.ts";
import type { QueueCounters } from "../../observe/counters.ts";
import type { QueueStats } from "../../observe/queue-stats.ts";
import type { CollectMetricsOptions } from "./collect-metrics-options.ts";
import { networkTime, queueMicrotask } from "../../time/runtime.ts";

/** The numbers of a queue, and how many messages fall due within so many milliseconds, or are due. */
export interface QueueReading extends QueueStats {
  readonly dueSoon: readonly { readonly within: number; readonly count: number }[];
}

/**
 * Reads the numbers of the queues once for all metrics of a scrape, which ask in the same turn of the event loop. A
 * scrape that begins during a reading gets the same numbers.
 *
 * A reading ends with its timeout, whatever Redis does. A queue that has not been read by then, or was refused, is left
 * out and counts as an error.
 */
export class Scraper {
  readonly #line: Delayline;
  readonly #list: QueueList;
  readonly #dueWithin: readonly number[];
  readonly #timeout: number;
  readonly #onError: (error: unknown, queue: string | undefined) => void;
  /** Failed readings so far, by queue; the key undefined stands for the list of queues. */
  readonly #errors = new Map<string | undefined, number>([[undefined, 0]]);
  #reading: Promise<ReadonlyMap<string, QueueReading>> | undefined;
  #ending: AbortController | undefined;
  #isClosed = false;
  #counters: ReadonlyMap<string, QueueCounters> | undefined;

  constructor(line: Delayline, options: Required<CollectMetricsOptions>) {
    this.#line = line;
    this.#dueWithin = options.dueWithin;
    this.#timeout = options.timeout;
    this.#onError = options.onError;
    this.#list = new QueueList(line, options.queues, (error) => this.#failed(error, undefined));
  }

  /** Failed readings so far, for each queue that has any; the key undefined stands for the list of queues. */
  get errors(): ReadonlyMap<string | undefined, number> {
    return this.#errors;
  }

  /** The counters of this process by queue, read once for all metrics that ask in the same turn of the event loop. */
  get counters(): ReadonlyMap<string, QueueCounters> {
    if (this.#counters === undefined) {
      this.#counters = this.#line.counters;
      queueMicrotask(() => (this.#counters = undefined));
    }
    return this.#counters;
  }

  /** The numbers of the queues that could be read, by name. Never rejects. */
  read(): Promise<ReadonlyMap<string, QueueReading>> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** Ends the reading that is under way. Later readings return nothing. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#ending?.abort();
    await Promise.all([this.#reading, this.#list.close()]);
  }

  async #read(): Promise<ReadonlyMap<string, QueueReading>> {
    if (this.#isClosed) return new Map();
    const ending = (this.#ending = new AbortController());
    const { signal } = ending;
    setMaxListeners(0, signal);
    const late = () => ending.abort(new Error(`no reply within ${this.#timeout} ms`));
    const timer = networkTime.setTimeout(late, this.#timeout);
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });

    const found = new Map<string, QueueReading>();
    const unread = new Set<string | undefined>([undefined]);
    const reading = this.#readAll(found, unread, signal);
    await Promise.race([reading, aborted]);
    networkTime.clearTimeout(timer);
    if (!this.#isClosed) for (const queue of unread) this.#failed(signal.reason, queue);
    // A copy: later replies are not part of this scrape.
    return new Map(found);
  }

  async #readAll(
    found: Map<string, QueueReading>,
    unread: Set<string | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    const names = await this.#list.names(() => this.counters.keys());
    if (signal.aborted) return;
    unread.delete(undefined);
    for (const name of names) unread.add(name);
    // Forget queues that are gone, or the map would grow for ever.
    for (const name of this.#errors.keys()) {
      if (name !== undefined && !unread.has(name)) this.#errors.delete(name);
    }
    const next = names.values();
    const readSome = async () => {
      for (const name of next) {
        try {
          const stats = await this.#line.stats(name, { signal });
          const dueSoon = await this.#dueSoon(name, stats, signal);
          unread.delete(name);
          found.set(name, { ...stats, dueSoon });
        } catch (error) {
          if (signal.aborted) return;
          unread.delete(name);
          this.#failed(error, name);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readSome));
  }

  async #dueSoon(name: string, stats: QueueStats, signal: AbortSignal) {
    const from = Math.floor(stats.serverTime) + 1;
    const due = stats.overdue + stats.waiting;
    return await Promise.all(
      this.#dueWithin.map(async (within) => {
        const { counts } = await this.#line.forecast(name, {
          from,
          step: within,
          count: 1,
          signal,
        });
        return { within, count: due + (counts[0] ?? 0) };
      }),
    );
  }

  #failed(error: unknown, queue: string | undefined): void {
    this.#errors.set(queue, (this.#errors.get(queue) ?? 0) + 1);
    try {
      this.#onError(error, queue);
    } catch {
      // An error of the user's callback must not end the scrape.
    }
  }
}

/** Queues that are read at once. Redis stays free for other clients, and a scrape of a thousand takes about 100 ms. */
const AT_ONCE = 16;

/**
 * The names of the queues whose numbers are read. With `"all"` it searches the keys of Redis once a minute, in the
 * background: only the first scrape waits for the search.
 */
class QueueList {
  readonly #line: Delayline;
  readonly #queues: readonly string[] | "all";
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  #found: readonly string[] | undefined;
  #foundAt = -Infinity;
  #search: Promise<void> | undefined;

  constructor(
    line: Delayline,
    queues: readonly string[] | "all",
    onError: (error: unknown) => void,
  ) {
    this.#line = line;
    this.#queues = queues === "all" ? queues : [...new Set(queues)];
    this.#onError = onError;
  }

  /** Never rejects. `open` returns the names of the queues that the client has open. */
  async names(open: () => Iterable<string>): Promise<readonly string[]> {
    if (this.#queues !== "all") return this.#queues;
    if (networkTime.now() - this.#foundAt >= MAX_AGE) {
      this.#search ??= this.#find().finally(() => (this.#search = undefined));
    }
    if (this.#found === undefined) await this.#search;
    // The search does not find an empty plain queue that has been idle for an hour, but the client may have it open.
    return [...new Set([...open(), ...(this.#found ?? [])])];
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#search;
  }

  async #find(): Promise<void> {
    const { signal } = this.#closing;
    const names: string[] = [];
    try {
      for await (const name of this.#line.queues({ signal })) names.push(name);
      this.#found = names;
      this.#foundAt = networkTime.now();
    } catch (error) {
      if (!signal.aborted) this.#onError(error);
    }
  }
}

/** Milliseconds between two searches. */
const MAX_AGE = 60_000;
