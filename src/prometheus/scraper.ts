import { setMaxListeners } from "node:events";
import type { Delayline } from "../client/delayline.ts";
import type { QueueCounters } from "../observe/counters.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { CollectMetricsOptions } from "./collect-metrics-options.ts";
import { QueueList } from "./queue-list.ts";

/**
 * Reads the numbers of the queues, once for all metrics of a scrape: they all ask in one turn. A scrape that begins meanwhile
 * gets the same numbers.
 *
 * A reading ends with its timeout, whatever Redis does. A queue that has not replied by then, or that has refused, is left
 * out, and counts as an error.
 */
export class Scraper {
  readonly #line: Delayline;
  readonly #list: QueueList;
  readonly #timeout: number;
  readonly #onError: (error: unknown, queue: string | undefined) => void;
  /** How many readings have failed, by queue, from the first one on; undefined: those of the list of queues. */
  readonly #errors = new Map<string | undefined, number>([[undefined, 0]]);
  #reading: Promise<ReadonlyMap<string, QueueStats>> | undefined;
  #ending: AbortController | undefined;
  #isClosed = false;
  #counters: ReadonlyMap<string, QueueCounters> | undefined;

  constructor(line: Delayline, options: Required<CollectMetricsOptions>) {
    this.#line = line;
    this.#timeout = options.timeout;
    this.#onError = options.onError;
    this.#list = new QueueList(line, options.queues, (error) => this.#failed(error, undefined));
  }

  /** How many readings have failed so far, of each queue of which one has; undefined: those of the list of queues. */
  get errors(): ReadonlyMap<string | undefined, number> {
    return this.#errors;
  }

  /** What this process has counted, by queue: read once for all metrics that ask in one turn. */
  get counters(): ReadonlyMap<string, QueueCounters> {
    if (this.#counters === undefined) {
      this.#counters = this.#line.counters;
      queueMicrotask(() => (this.#counters = undefined));
    }
    return this.#counters;
  }

  /** The numbers of the queues that replied, by their names. Never rejects. */
  read(): Promise<ReadonlyMap<string, QueueStats>> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** Ends the reading that is under way; from now on nothing is read. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#ending?.abort();
    await Promise.all([this.#reading, this.#list.close()]);
  }

  async #read(): Promise<ReadonlyMap<string, QueueStats>> {
    if (this.#isClosed) return new Map();
    const ending = (this.#ending = new AbortController());
    const { signal } = ending;
    setMaxListeners(0, signal);
    const late = () => ending.abort(new Error(`no reply within ${this.#timeout} ms`));
    const timer = setTimeout(late, this.#timeout);
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });

    const found = new Map<string, QueueStats>();
    const unread = new Set<string | undefined>([undefined]);
    const reading = this.#readAll(found, unread, signal);
    await Promise.race([reading, aborted]);
    clearTimeout(timer);
    if (!this.#isClosed) for (const queue of unread) this.#failed(signal.reason, queue);
    // What comes too late is no part of this scrape.
    return new Map(found);
  }

  async #readAll(
    found: Map<string, QueueStats>,
    unread: Set<string | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    const names = await this.#list.names(() => this.counters.keys());
    if (signal.aborted) return;
    unread.delete(undefined);
    for (const name of names) unread.add(name);
    // Queues come and go: what is gone is not remembered for ever.
    for (const name of this.#errors.keys()) {
      if (name !== undefined && !unread.has(name)) this.#errors.delete(name);
    }
    const next = names.values();
    const readSome = async () => {
      for (const name of next) {
        try {
          const stats = await this.#line.stats(name, { signal });
          unread.delete(name);
          found.set(name, stats);
        } catch (error) {
          if (signal.aborted) return;
          unread.delete(name);
          this.#failed(error, name);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, readSome));
  }

  #failed(error: unknown, queue: string | undefined): void {
    this.#errors.set(queue, (this.#errors.get(queue) ?? 0) + 1);
    try {
      this.#onError(error, queue);
    } catch {
      // It is the user's, and a scrape goes on.
    }
  }
}

/** Queues that are asked at once: Redis is not kept from others, and a scrape of a thousand takes some 100 ms. */
const AT_ONCE = 16;
