import type { DeadLetters } from "../reliable/dead-letters.ts";
import type { DelayedQueue } from "../delayed/delayed-queue.ts";
import type { BlockingQueue } from "../ready/blocking-queue.ts";
import type { ReliableQueue } from "../reliable/reliable-queue.ts";
import { Delayline } from "../client/delayline.ts";
import type { DelaylineOptions } from "../queue/options.ts";
import type { AnyDelaylineError } from "../errors.ts";
import type { QueueStats } from "../observe/queue-stats.ts";

/** A queue as it was found in Redis, opened to look at: nothing is moved and nothing is taken. Payloads are bytes. */
export interface InspectedQueue {
  readonly name: string;
  /** How many partitions it has; 0: it is an ordinary queue. */
  readonly partitions: number;
  /** Finds, cancels and reschedules; offers, for who imports. */
  readonly messages: DelayedQueue<Uint8Array> | ReliableQueue<Uint8Array>;
  /** Of a plain queue: what is ready. */
  readonly ready: BlockingQueue<Uint8Array> | undefined;
  /** Of a reliable queue. */
  readonly deadLetters: DeadLetters<Uint8Array> | undefined;
  /** What was in it when it was opened. */
  readonly stats: QueueStats;
}

/** Options of an {@link Inspector}. */
export interface InspectorOptions extends Pick<
  DelaylineOptions,
  "redis" | "callTimeout" | "closeTimeout" | "interop"
> {
  /** Is told what fails that nobody awaits, such as a lost connection. Defaults to a process warning. */
  readonly onError?: (error: AnyDelaylineError) => void;
}

/**
 * Opens whatever queue there is under a name: plain or reliable, ordinary or in partitions. It takes part in nothing: it
 * moves no messages and takes none.
 */
export class Inspector implements AsyncDisposable {
  readonly #options: InspectorOptions;
  readonly #former = new Set<Promise<void>>();
  #line: Delayline;
  /** Whether each queue that is open in the client is open as one in partitions. */
  readonly #open = new Map<string, boolean>();
  /** Names under which nothing was. The client has them open, too. */
  readonly #empty = new Set<string>();

  constructor(options: InspectorOptions) {
    this.#options = options;
    this.#line = this.#connect();
  }

  /** The client that it looks through. It may be another one after {@link open}. */
  get line(): Delayline {
    return this.#line;
  }

  /** The names of all queues, in alphabetical order. Reads the names of all keys. */
  async names(signal?: AbortSignal): Promise<string[]> {
    const names: string[] = [];
    for await (const name of this.#line.queues({ signal })) names.push(name);
    return names.toSorted();
  }

  /**
   * Opens a queue as it is now. One that does not exist is an empty plain queue.
   *
   * @throws {TypeError} if the name cannot name a queue.
   * @throws {RedisError} if Redis cannot be asked.
   */
  async open(name: string, signal?: AbortSignal): Promise<InspectedQueue> {
    const partitions = await this.#countPartitions(name, signal);
    const isPartitioned = partitions > 0;
    // What a client has open as the one, it does not open as the other.
    const isOther = (this.#open.get(name) ?? isPartitioned) !== isPartitioned;
    // And what it has open it keeps: made-up names would fill the memory.
    if (isOther || this.#empty.size >= MOST_EMPTY) this.#startAgain();
    this.#open.set(name, isPartitioned);
    const options = {
      codec: "bytes",
      ...(isPartitioned && { partitions, interop: "none" as const }),
    } as const;
    const delayed = this.#line.getDelayedQueue(name, options);
    const stats = await delayed.stats({ signal });
    if (isEmpty(stats)) this.#empty.add(name);
    else this.#empty.delete(name);
    const isReliable = stats.kind === "reliable" || stats.dead > 0 || stats.retries > 0;
    if (!isReliable) {
      const ready = this.#line.getBlockingQueue(name, options);
      return { name, partitions, messages: delayed, ready, deadLetters: undefined, stats };
    }
    const messages = this.#line.getReliableQueue(name, options);
    const { deadLetters } = messages;
    return { name, partitions, messages, ready: undefined, deadLetters, stats };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#former, this.#line.close()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #countPartitions(name: string, signal?: AbortSignal): Promise<number> {
    const partitions = await this.#line.partitions(name, { signal });
    return partitions.filter(({ partition }) => partition >= 0).length;
  }

  #connect(): Delayline {
    const { onError, ...options } = this.#options;
    const line = new Delayline({ ...options, transfer: false });
    if (onError !== undefined) line.on("error", onError);
    return line;
  }

  #startAgain(): void {
    const former = this.#line.close().finally(() => this.#former.delete(former));
    this.#former.add(former);
    this.#open.clear();
    this.#empty.clear();
    this.#line = this.#connect();
  }
}

/** Whether nothing is in a queue, nobody has it open as far as Redis tells, and it is not paused. */
export function isEmpty(stats: QueueStats): boolean {
  const { delayed, ready, inFlight, retries, dead, quarantined } = stats;
  const count = delayed + ready + inFlight + retries + dead + quarantined;
  const { kind, isPaused, consumers = 0, listeners = 0, perPartition } = stats;
  const isOpen = consumers + listeners + perPartition.length > 0;
  return count === 0 && !isOpen && kind === "plain" && !isPaused;
}

/** How many names without a queue a client keeps, some 5 kB each. */
const MOST_EMPTY = 500;
