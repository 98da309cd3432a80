import { isDeepStrictEqual } from "node:util";
import { RedisError, type QueueStats } from "../../../index.ts";
import { causeOf, networkTime } from "../../../inside.ts";
import { isEmpty, type InspectedQueue, type Inspector } from "../inspector.ts";
import { brokenRow, Histories, rowOf, type QueueRow } from "./history.ts";
import { unread } from "../problems.ts";
import { refusal, sentence, silence, unlisted, type Trouble } from "../trouble.ts";
import type { KeptHistory } from "./kept-history.ts";

/** The numbers of one queue, as they were read. */
export interface Sample {
  readonly row: QueueRow;
  /** Undefined if the numbers could never be read; then `row.error` says why. */
  readonly stats: QueueStats | undefined;
  /** Whether the read before found the same row. Then it is the same object. */
  readonly isStill: boolean;
  /** Why the numbers could not be read now, if they could not. If they were read before, `row` and `stats` are of then. */
  readonly failure?: unknown;
}

/** The numbers of all queues, as one round read them. */
export interface Round {
  /** When the round ended, on the Redis server's clock (epoch ms). */
  readonly at: number;
  /** By name, in alphabetical order. */
  readonly samples: ReadonlyMap<string, Sample>;
  /** What is wrong with Redis itself. If it is silent, the samples are those of before. */
  readonly trouble?: Trouble;
}

interface Watcher {
  readonly onRound: (round: Round) => void;
  /** A queue that is read even if it is empty. */
  readonly queue: string | undefined;
}

/** The shortest intervals between two rounds and between two searches for queues, and that of rounds without watchers (ms). */
interface Rhythm {
  readonly round: number;
  readonly search: number;
  readonly keeping: number;
}

const RHYTHM: Rhythm = { round: 2_000, search: 30_000, keeping: 60_000 };

/** Rest per script (ms). Each script takes Redis some 50 us, so all of them take at most 1 % of its time. */
const REST_PER_SCRIPT = 5;

/** Searches that take longer than this (ms) become less frequent in proportion, and take at most 0.5 % of the time. */
const LONG_SEARCH = 150;
const MAX_SEARCH_REST = 600_000;

/** How often {@link Sampler.keep} searches for queues (ms). */
const KEEPING_SEARCH = 600_000;

/** Up to this many queues, each round reads all. */
const FEW = 20;

/** Of more queues, one at rest is looked at in every tenth round. */
const RESTING_ROUNDS = 10;

/** How many queues are read, or looked at, in one command: a third of a millisecond of Redis's time. */
const TOGETHER = 5;

/** How many queues are read at once. */
const CONCURRENCY = 4 * TOGETHER;

/**
 * Reads the numbers of all queues in rounds, once for all watchers. Without watchers it runs no rounds, or with
 * {@link Sampler.keep} one a minute.
 *
 * Opens a queue when it first finds it, and again if its kind or the number of its partitions has changed.
 */
export class Sampler {
  readonly #inspector: Inspector;
  readonly #rhythm: Rhythm;
  readonly #watchers = new Set<Watcher>();
  readonly #open = new Map<string, InspectedQueue>();
  readonly #histories = new Histories();
  #names: readonly string[] = [];
  #roundCount = 0;
  #searchedAt = -Infinity;
  #searchAt = 0;
  #last: Round | undefined;
  /** When the last round ended, on this process's clock (epoch ms). */
  #lastAt = 0;
  /** How far the Redis server's clock is ahead of this process's (ms). */
  #ahead = 0;
  #running: Promise<Round> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #keeping: NodeJS.Timeout | undefined;
  readonly #kept: KeptHistory | undefined;
  /** When Redis last replied, be it with a refusal (epoch ms on its clock). */
  #heardAt: number | undefined;
  #heardCount = 0;
  /** How long to rest after the last round (ms). */
  #rest: number;
  #isClosed = false;

  constructor(inspector: Inspector, kept?: KeptHistory, rhythm: Partial<Rhythm> = {}) {
    this.#inspector = inspector;
    this.#kept = kept;
    this.#rhythm = { ...RHYTHM, ...rhythm };
    this.#rest = this.#rhythm.round;
  }

  /** The time on the Redis server's clock (epoch ms), estimated from the last numbers. */
  get now(): number {
    return Math.floor(Date.now() + this.#ahead);
  }

  /** Calls `onRound` after each round, and at once if the last round is fresh. Returns a function that stops this. */
  watch(queue: string | undefined, onRound: (round: Round) => void): () => void {
    const watcher = { queue, onRound };
    this.#watchers.add(watcher);
    const hasQueue = queue === undefined || this.#last?.samples.has(queue);
    if (this.#last !== undefined && this.#isFresh && hasQueue) onRound(this.#last);
    else this.#begin();
    this.#schedule();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stop();
    };
  }

  /** From now on runs a round a minute for the history that is kept, unless another dashboard does. */
  keep(): void {
    const { keeping } = this.#rhythm;
    const run = async () => {
      const isDone = await this.#kept?.isNoted(this.#names, this.now);
      if (isDone !== false || this.#watchers.size > 0) return;
      await this.#run(Date.now() >= this.#searchedAt + KEEPING_SEARCH);
    };
    const again = (rest: number) => {
      if (this.#isClosed) return;
      this.#keeping = networkTime
        .setTimeout(() => void run().finally(() => again(keeping)), rest)
        .unref();
    };
    // Several processes that start together then look at different times of the minute.
    void run().finally(() => again(Math.random() * keeping));
  }

  /** Returns the last round if it is fresh, or else runs a new one. */
  async round(): Promise<Round> {
    if (this.#last !== undefined && this.#isFresh) return this.#last;
    return await this.#run();
  }

  /** Reads the numbers of one queue now. */
  async look(name: string): Promise<Sample> {
    const found = await this.#look(name);
    const sample = this.#isMissing(name, found) ? missing(found) : found;
    this.#note(name, this.now, sample);
    // Only rounds drop queues that are gone, and without watchers there are none.
    if (!this.knows(name)) this.#open.delete(name);
    return sample;
  }

  /** Whether the last search found this queue, or it has a history. */
  knows(name: string): boolean {
    return this.#names.includes(name) || this.#histories.has(name);
  }

  get histories(): Pick<Histories, "points" | "minutes"> {
    return this.#histories;
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    networkTime.clearTimeout(this.#keeping);
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
    this.#timer = networkTime.setTimeout(() => this.#begin(), this.#rest).unref();
  }

  #stop(): void {
    networkTime.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #begin(): void {
    this.#stop();
    void this.#run().finally(() => this.#schedule());
  }

  async #run(searches = this.#searchIsDue): Promise<Round> {
    this.#running ??= this.#read(searches).finally(() => (this.#running = undefined));
    return await this.#running;
  }

  /** Runs a round, and with `searches` looks for new queues. Never rejects: failures are part of the round. */
  async #read(searches: boolean): Promise<Round> {
    const startedAt = Date.now();
    const watched = Array.from(this.#watchers, ({ queue }) => queue ?? []).flat();
    const { known, due } = this.#resting(watched, startedAt);
    // Search and read at the same time: if Redis does not answer, each takes as long as a call may.
    const looking = this.#keepUnchanged(due, known).then(() =>
      this.#lookAtAll([...this.#names, ...watched], known),
    );
    const [heardAt, heardCount] = [this.#heardAt, this.#heardCount];
    const refusing = this.#refusal();
    const failure = searches ? await this.#search() : undefined;
    const searchTime = Date.now() - startedAt;
    await looking;
    await this.#lookAtAll(this.#names, known);
    const others = watched.filter((name) => !this.#names.includes(name));
    const names =
      others.length === 0 ? this.#names : [...this.#names, ...new Set(others)].toSorted();
    const samples = new Map<string, Sample>();
    const endedAt = Date.now();
    const at = this.now;
    if (searches && failure === undefined) this.#searchedAt = Date.now();
    const failures = [failure, ...Array.from(known.values(), (sample) => sample.failure)];
    const [reason] = failures.filter((one) => one !== undefined);
    const isSilent = reason !== undefined && this.#heardCount === heardCount;
    let scripts = 0;
    for (const name of names) {
      const found = known.get(name);
      if (found === undefined) continue;
      // One cause for all: no queue says it as well.
      if (isSilent && found.stats === undefined) continue;
      const read = isSilent || found.failure === undefined ? found : unreadNow(found);
      const sample = this.#isMissing(name, read) ? missing(read) : read;
      samples.set(name, sample);
      this.#note(name, at, sample);
      scripts += Math.max(1, sample.row.partitions);
    }
    this.#rest = Math.max(this.#rhythm.round, scripts * REST_PER_SCRIPT);
    if (searches) {
      for (const name of this.#open.keys()) if (!samples.has(name)) this.#open.delete(name);
      this.#histories.sweep(at);
      const { search } = this.#rhythm;
      const rest = Math.min(MAX_SEARCH_REST, (search * searchTime) / LONG_SEARCH);
      // After a failure the next round searches again.
      this.#searchAt = endedAt + (failure === undefined ? Math.max(search, rest) : 0);
    }
    const trouble = isSilent
      ? silence(heardAt, causeOf(reason))
      : failure === undefined
        ? await refusing
        : unlisted(messageOf(failure));
    // The same object while nothing changes, so that callers need not compare it again.
    const isSame = isDeepStrictEqual(trouble, this.#last?.trouble);
    const same = isSame ? this.#last?.trouble : trouble;
    const round = { at, samples, ...(same !== undefined && { trouble: same }) };
    this.#last = round;
    this.#lastAt = endedAt;
    if (!isSilent) void this.#kept?.note(at, () => Array.from(samples.values(), ({ row }) => row));
    for (const { onRound } of this.#watchers) onRound(round);
    return round;
  }

  /**
   * Adds samples of the queues that have none yet, a few at a time, so that other commands get through. After a failure
   * it reads all the others at once: otherwise each might wait for a timeout of its own.
   */
  async #lookAtAll(names: readonly string[], samples: Map<string, Sample>): Promise<void> {
    const rest = new Set(names.filter((name) => !samples.has(name))).values();
    const look = async (name: string) => {
      const sample = await this.#look(name);
      samples.set(name, sample);
      if (sample.failure !== undefined) await Promise.all(Array.from(rest, look));
    };
    const work = async () => {
      for (const name of rest) await look(name);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
  }

  #hear(): void {
    this.#heardAt = this.now;
    this.#heardCount++;
  }

  /** Searches for queues. Returns the error if that fails. */
  async #search(): Promise<unknown> {
    try {
      this.#names = await this.#inspector.names();
      this.#hear();
      return undefined;
    } catch (error) {
      if (isRefusal(error)) this.#hear();
      return error;
    }
  }

  /** That Redis refuses every write; undefined if it does not, or cannot be asked. */
  async #refusal(): Promise<Trouble | undefined> {
    const cause = await this.#inspector.refusal(this.#names[0]).catch(() => undefined);
    return cause && refusal(cause);
  }

  /**
   * The last samples of queues at rest, in which nothing is ready, in flight or due soon, and nothing has changed: `known`
   * are those that this round does not read; of those that are `due` it asks whether anything has changed. So many quiet
   * queues cost little. After a pause everything is read.
   */
  #resting(watched: readonly string[], startedAt: number) {
    const known = new Map<string, Sample>();
    const due = new Map<string, Sample>();
    const turn = this.#roundCount++ % RESTING_ROUNDS;
    const longest = RESTING_ROUNDS * this.#rest;
    if (this.#names.length <= FEW || startedAt - this.#lastAt > longest) return { known, due };
    const until = this.now + longest;
    for (const [i, name] of this.#names.entries()) {
      const sample = this.#last?.samples.get(name);
      if (sample?.stats === undefined || !sample.isStill || watched.includes(name)) continue;
      if (sample.failure !== undefined) continue;
      const { ready, inFlight, overdue, nextDeadline = Infinity, partitions } = sample.row;
      const isQuiet = ready + inFlight + overdue === 0 && nextDeadline > until;
      if (!isQuiet) continue;
      if (i % RESTING_ROUNDS !== turn) known.set(name, sample);
      else if (partitions === 0) due.set(name, sample);
    }
    return { known, due };
  }

  /** Adds those of the samples to `known` in whose queues nothing has changed. The others have to be read. */
  async #keepUnchanged(
    due: ReadonlyMap<string, Sample>,
    known: Map<string, Sample>,
  ): Promise<void> {
    if (due.size === 0) return;
    const before = Array.from(due, ([name, { stats }]) => [name, stats as QueueStats] as const);
    const unchanged = await this.#inspector.unchanged(before, TOGETHER).catch(() => []);
    for (const name of unchanged) known.set(name, due.get(name) as Sample);
  }

  async #look(name: string): Promise<Sample> {
    try {
      const stats = await this.#inspector.look(name, TOGETHER);
      this.#ahead = stats.serverTime - Date.now();
      this.#hear();
      let open = this.#open.get(name);
      if (open === undefined || !isAsOpened(open, stats)) {
        open = await this.#inspector.openAs(name, stats);
        this.#open.set(name, open);
      }
      return this.#sample(rowOf(name, open.partitions, stats), stats);
    } catch (error) {
      this.#open.delete(name);
      const before = this.#last?.samples.get(name);
      const isSilent = !isRefusal(error);
      if (!isSilent) this.#hear();
      // What was read last says more than nothing.
      if (isSilent && before?.stats !== undefined)
        return { ...before, isStill: true, failure: error };
      return { ...this.#sample(brokenRow(name, messageOf(error)), undefined), failure: error };
    }
  }

  /** Whether a name is made up, or that of a queue that is gone. Only a search can tell. */
  #isMissing(name: string, { stats }: Sample): boolean {
    const hasSearched = this.#searchedAt !== -Infinity;
    return hasSearched && stats !== undefined && isEmpty(stats) && !this.knows(name);
  }

  /** Adds a sample to the history. Skips empty queues that are unknown, because anyone can make up a name. */
  #note(name: string, at: number, { row, stats, failure }: Sample): void {
    if (stats === undefined || failure !== undefined) return;
    if (this.#histories.has(name) || !isEmpty(stats) || this.knows(name))
      this.#histories.add(name, at, row);
  }

  /** Keeps the row of the last round if nothing has changed, so that callers need not compare its fields again. */
  #sample(row: QueueRow, stats: QueueStats | undefined): Sample {
    const before = this.#last?.samples.get(row.name)?.row;
    const isStill = before !== undefined && isDeepStrictEqual(before, row);
    return { row: isStill ? before : row, stats, isStill };
  }
}

/** Whether a queue is still of the kind, and has the partitions, that it was opened with. */
function isAsOpened({ stats }: InspectedQueue, { kind, perPartition }: QueueStats): boolean {
  return kind === stats.kind && perPartition.length === stats.perPartition.length;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = causeOf(error);
  return cause === undefined || error.message.includes(cause.repair)
    ? error.message
    : `${error.message}. Redis ${cause.what}. ${sentence(cause.repair)}`;
}

/** Whether Redis replied, and refused: other queues may be well. */
function isRefusal(error: unknown): boolean {
  return error instanceof RedisError && error.reply !== undefined;
}

/** A sample of a name without a queue. */
function missing(sample: Sample): Sample {
  return sample.row.isMissing ? sample : { ...sample, row: { ...sample.row, isMissing: true } };
}

/** A sample of a queue that could not be read while others could: with its last numbers, and that they are not new. */
function unreadNow(sample: Sample): Sample {
  const { row, failure } = sample;
  if (row.error !== undefined) return sample;
  const error = messageOf(failure);
  return { ...sample, row: { ...row, error, problems: [unread(error)] } };
}
