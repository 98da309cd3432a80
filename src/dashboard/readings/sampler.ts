import { ClosedError } from "../../errors.ts";
import { isEmpty, type InspectedQueue, type Inspector } from "../../inspect/inspector.ts";
import type { QueueStats } from "../../observe/queue-stats.ts";
import { Histories } from "./histories.ts";
import { brokenRow, rowOf, type Row } from "./row.ts";

/** What is known of one queue. */
export interface Sample {
  readonly row: Row;
  /** Undefined if it could not be looked at. */
  readonly stats: QueueStats | undefined;
}

/** What one round has found. */
export interface Round {
  /** On the clock of Redis, by which messages are due (epoch ms). */
  readonly at: number;
  /** By name, in alphabetical order. */
  readonly samples: ReadonlyMap<string, Sample>;
  /** Why the queues could not be found; then these are those of before. */
  readonly error?: string;
}

/** Who is told of each round. */
interface Watcher {
  readonly onRound: (round: Round) => void;
  /** A queue that is looked at even if nothing is in it. */
  readonly queue: string | undefined;
}

/** How often something is done at most, while somebody watches (ms). */
interface Rhythm {
  /** The numbers are read. */
  readonly round: number;
  /** Queues are looked for. */
  readonly search: number;
}

const RHYTHM: Rhythm = { round: 2_000, search: 30_000 };

/** A script of numbers takes Redis some 50 us. They may take 1 % of its time, so each asks for this rest (ms). */
const REST = 5;

/** A search that takes longer than this (ms) is done less often, in proportion: so it takes 0.5 % of the time at most. */
const LONG_SEARCH = 150;
const LONGEST_SEARCH_REST = 600_000;

/** Queues that are asked at once. */
const AT_ONCE = 8;

/**
 * Reads the numbers of all queues, once for all who watch. While nobody watches it reads nothing.
 *
 * A queue is opened when it is found, and again each time that queues are looked for: by then it may be in partitions.
 */
export class Sampler {
  readonly #inspector: Inspector;
  readonly #rhythm: Rhythm;
  readonly #watchers = new Set<Watcher>();
  readonly #open = new Map<string, InspectedQueue>();
  readonly #histories = new Histories();
  #names: readonly string[] = [];
  #searchAt = 0;
  #last: Round | undefined;
  /** When the last round ended, on our clock. */
  #lastAt = 0;
  /** How far the clock of Redis is ahead of ours (ms). */
  #ahead = 0;
  #running: Promise<Round> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** How long to rest behind the last round (ms). */
  #rest: number;
  #isClosed = false;

  constructor(inspector: Inspector, rhythm = RHYTHM) {
    this.#inspector = inspector;
    this.#rhythm = rhythm;
    this.#rest = rhythm.round;
  }

  /** The time on the clock of Redis (epoch ms), as far as it is known. */
  get now(): number {
    return Math.floor(Date.now() + this.#ahead);
  }

  /** Tells of each round from now on, and of the last one if it is fresh. Returns what ends that. */
  watch(queue: string | undefined, onRound: (round: Round) => void): () => void {
    const watcher = { queue, onRound };
    this.#watchers.add(watcher);
    const knows = queue === undefined || this.#last?.samples.has(queue);
    if (this.#last !== undefined && this.#isFresh && knows) onRound(this.#last);
    else this.#begin();
    this.#schedule();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stop();
    };
  }

  /** The last round, if it is fresh, or a new one. */
  async round(): Promise<Round> {
    if (this.#last !== undefined && this.#isFresh) return this.#last;
    return await this.#run();
  }

  /** What is in one queue now. */
  async look(name: string): Promise<Sample> {
    const sample = await this.#look(name, this.#searchIsDue);
    this.#note(name, this.now, sample);
    // It would be kept as long as nobody watches.
    if (!this.knows(name)) this.#open.delete(name);
    return sample;
  }

  /** Whether there is a queue of this name, or was in the last hour, as far as somebody has looked. */
  knows(name: string): boolean {
    return this.#names.includes(name) || this.#histories.has(name);
  }

  get histories(): Pick<Histories, "points"> {
    return this.#histories;
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    this.#watchers.clear();
  }

  get #isFresh(): boolean {
    return this.#last !== undefined && Date.now() - this.#lastAt < this.#rest;
  }

  get #searchIsDue(): boolean {
    return Date.now() >= this.#searchAt;
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#isClosed || this.#watchers.size === 0) return;
    this.#timer = setTimeout(() => this.#begin(), this.#rest).unref();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #begin(): void {
    this.#stop();
    void this.#run().finally(() => this.#schedule());
  }

  async #run(): Promise<Round> {
    this.#running ??= this.#read().finally(() => (this.#running = undefined));
    return await this.#running;
  }

  /** Does not reject: what could not be read is in the round. */
  async #read(): Promise<Round> {
    const startedAt = Date.now();
    const mayBeOther = this.#searchIsDue;
    const watched = Array.from(this.#watchers, ({ queue }) => queue ?? []).flat();
    const known = new Map<string, Sample>();
    // At the same time: where Redis does not answer, both take long.
    const looking = this.#lookAtAll([...this.#names, ...watched], known, mayBeOther);
    const error = mayBeOther ? await this.#search() : this.#last?.error;
    const searchTime = Date.now() - startedAt;
    await looking;
    await this.#lookAtAll(this.#names, known, mayBeOther);
    const names = [...new Set([...this.#names, ...watched])].toSorted();
    const samples = new Map(names.flatMap((name) => entryOf(known, name)));
    const endedAt = Date.now();
    const at = this.now;
    for (const [name, sample] of samples) this.#note(name, at, sample);
    let scripts = 0;
    for (const { row } of samples.values()) scripts += Math.max(1, row.partitions);
    this.#rest = Math.max(this.#rhythm.round, scripts * REST);
    if (mayBeOther) {
      for (const name of this.#open.keys()) if (!samples.has(name)) this.#open.delete(name);
      this.#histories.sweep(at);
      const { search } = this.#rhythm;
      const rest = Math.min(LONGEST_SEARCH_REST, (search * searchTime) / LONG_SEARCH);
      // Where Redis could not be asked it is asked again soon.
      this.#searchAt = endedAt + (error === undefined ? Math.max(search, rest) : 0);
    }
    const round = { at, samples, ...(error !== undefined && { error }) };
    this.#last = round;
    this.#lastAt = endedAt;
    for (const { onRound } of this.#watchers) onRound(round);
    return round;
  }

  /**
   * Looks at those that are not among the samples yet. Some at once, so that others get a word in; all at once after a
   * failure, or each would wait for its own.
   */
  async #lookAtAll(
    names: readonly string[],
    samples: Map<string, Sample>,
    mayBeOther: boolean,
  ): Promise<void> {
    const rest = new Set(names.filter((name) => !samples.has(name))).values();
    const look = async (name: string) => {
      const sample = await this.#look(name, mayBeOther);
      samples.set(name, sample);
      if (sample.stats === undefined) await Promise.all(Array.from(rest, look));
    };
    const work = async () => {
      for (const name of rest) await look(name);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  /** Looks for queues; returns why they could not be found. */
  async #search(): Promise<string | undefined> {
    try {
      this.#names = await this.#inspector.names();
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  async #look(name: string, mayBeOther: boolean): Promise<Sample> {
    try {
      const known = mayBeOther ? undefined : this.#open.get(name);
      if (known !== undefined) {
        return this.#sample(known, await known.messages.stats());
      }
      const open = await this.#inspector.open(name);
      this.#open.set(name, open);
      return this.#sample(open, open.stats);
    } catch (error) {
      this.#open.delete(name);
      // The inspector has begun anew, since a queue is in partitions now, or is not any more.
      if (error instanceof ClosedError && !mayBeOther && !this.#isClosed) {
        return await this.#look(name, true);
      }
      return { row: brokenRow(name, messageOf(error)), stats: undefined };
    }
  }

  /** Notes what was seen, unless nothing is there and nothing was: anybody can make up a name. */
  #note(name: string, at: number, { row, stats }: Sample): void {
    if (stats === undefined || (isEmpty(stats) && !this.knows(name))) return;
    this.#histories.add(name, at, row);
  }

  #sample({ name, partitions }: InspectedQueue, stats: QueueStats): Sample {
    this.#ahead = stats.serverTime - Date.now();
    return { row: rowOf(name, partitions, stats), stats };
  }
}

function entryOf(samples: ReadonlyMap<string, Sample>, name: string): [string, Sample][] {
  const sample = samples.get(name);
  return sample === undefined ? [] : [[name, sample]];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
