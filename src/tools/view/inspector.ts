import {
  Delayline,
  type AnyDelaylineError,
  type BlockingQueue,
  type DeadLetters,
  type DelayedQueue,
  type DelaylineOptions,
  type QueueStats,
  type ReliableQueue,
} from "../../index.ts";
import {
  causeOf,
  insideClient,
  insideOf,
  layout,
  type Cause,
  type InsideQueue,
  type InsideServer,
} from "../../inside.ts";
import { messagesIn } from "./places.ts";

/** A queue opened for inspection: it moves and takes nothing. Payloads are bytes. */
export interface InspectedQueue {
  readonly name: string;
  /** How many partitions it has; 0 for an ordinary queue. */
  readonly partitions: number;
  /** Its parts, and what is in them. */
  readonly inside: InsideQueue;
  /** Finds, cancels and reschedules its messages. */
  readonly messages: DelayedQueue<Uint8Array> | ReliableQueue<Uint8Array>;
  /** The ready messages of a plain queue. */
  readonly ready: BlockingQueue<Uint8Array> | undefined;
  /** The queue, if it is reliable: revokes its messages. */
  readonly reliable: ReliableQueue<Uint8Array> | undefined;
  /** The dead letters of a reliable queue. */
  readonly deadLetters: DeadLetters<Uint8Array> | undefined;
  /** The numbers at the time of opening. */
  readonly stats: QueueStats;
}

/** Options of an {@link Inspector}. */
interface InspectorOptions extends Pick<
  DelaylineOptions,
  "redis" | "callTimeout" | "unreachableTimeout" | "interop"
> {
  /** Called with failures in the background, such as a lost connection. Defaults to a process warning. */
  readonly onError?: (error: AnyDelaylineError) => void;
}

/**
 * Opens any queue by its name alone: plain or reliable, ordinary or partitioned. By itself it moves and takes no
 * messages.
 */
export class Inspector implements AsyncDisposable {
  readonly line: Delayline;
  /** Names under which no queue was found. The client has these open as well. */
  readonly #empty = new Set<string>();

  constructor({ onError, ...options }: InspectorOptions) {
    this.line = new Delayline({ ...options, transfer: false });
    if (onError !== undefined) this.line.on("error", onError);
  }

  /** The servers that the options name; a queue without partitions is on the first. */
  get servers(): readonly [InsideServer, ...InsideServer[]] {
    return insideClient(this.line).servers;
  }

  /** The names of all queues, in alphabetical order. Scans the names of all keys. */
  async names(signal?: AbortSignal): Promise<string[]> {
    const names: string[] = [];
    for await (const name of this.line.queues({ signal })) names.push(name);
    return names.toSorted();
  }

  /**
   * Opens a queue as it is now. A queue that does not exist opens as an empty plain queue.
   *
   * @throws {TypeError} if the name is invalid.
   * @throws {RedisError} if Redis refuses or does not reply.
   */
  async open(name: string, signal?: AbortSignal): Promise<InspectedQueue> {
    return await this.openAs(name, await this.line.stats(name, { signal }));
  }

  /**
   * Reads the numbers of a queue, in one command with those of up to `most` others that are read at the same time: that
   * costs both sides less, and takes 10 ms longer when there are fewer.
   *
   * @throws as {@link open} does.
   */
  async look(name: string, most: number): Promise<QueueStats> {
    return await insideClient(this.line).stats(name, most);
  }

  /**
   * Returns those of the queues without partitions whose numbers are as they were read before, in commands for `most`
   * queues each: next to no work for this process. A queue that cannot be read is not among them. On a Cluster, none is.
   *
   * @throws {UnansweredError} if Redis does not reply.
   */
  async unchanged(
    before: Iterable<readonly [string, QueueStats]>,
    most: number,
  ): Promise<string[]> {
    return await insideClient(this.line).unchanged(before, most);
  }

  /** Opens a queue that has these numbers. */
  async openAs(name: string, stats: QueueStats): Promise<InspectedQueue> {
    const partitions = stats.perPartition.filter(({ partition }) => partition >= 0).length;
    // A client keeps every queue open: names without a queue would fill the memory.
    if (this.#empty.size >= MOST_EMPTY) await this.#closeEmpty();
    const options = {
      codec: "bytes",
      ...(partitions > 0 && { partitions, interop: "none" as const }),
    } as const;
    const delayed = this.line.getDelayedQueue(name, options);
    if (isEmpty(stats)) this.#empty.add(name);
    else this.#empty.delete(name);
    const isReliable = stats.kind === "reliable" || stats.dead > 0 || stats.retries > 0;
    if (!isReliable) {
      const ready = this.line.getBlockingQueue(name, options);
      const inside = insideOf(delayed);
      const plain = { messages: delayed, ready, reliable: undefined, deadLetters: undefined };
      return { name, partitions, inside, ...plain, stats };
    }
    const messages = this.line.getReliableQueue(name, options);
    const { deadLetters } = messages;
    const inside = insideOf(messages);
    const reliable = { messages, ready: undefined, reliable: messages, deadLetters };
    return { name, partitions, inside, ...reliable, stats };
  }

  /**
   * Why Redis refuses every write, such as a full disk; undefined if it accepts them, or that cannot be found out.
   * Reading may work all the same. One command per server; it changes nothing.
   *
   * @param queue one that the user may write to.
   */
  async refusal(queue = "delayline", signal?: AbortSignal): Promise<Cause | undefined> {
    // No script uses this key, and XX writes only to one that exists. Redis refuses it like any other write.
    const key = layout.queueKeys(queue).timeouts.replace(/^[^:]*/, "delayline_probe");
    const ask = async (server: InsideServer) => {
      // Not sent again after a refusal: that is the answer.
      const sent = server.within(async () => await server.client.set(key, "", "XX"), { signal });
      return await sent.then(() => undefined, causeOf);
    };
    const causes = await Promise.all(this.servers.map(ask));
    signal?.throwIfAborted();
    return causes.find((cause) => cause !== undefined && OF_WRITES.has(cause.kind));
  }

  async close(): Promise<void> {
    await this.line.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #closeEmpty(): Promise<void> {
    const names = [...this.#empty];
    this.#empty.clear();
    await Promise.all(names.map((name) => this.line.closeQueue(name)));
  }
}

/** Whether a queue holds nothing, is not paused, and as far as Redis shows is not open anywhere. */
export function isEmpty(stats: QueueStats): boolean {
  const { kind, isPaused, consumers = 0, listeners = 0, perPartition } = stats;
  const isOpen = consumers + listeners + perPartition.length > 0;
  return messagesIn(stats) === 0 && !isOpen && kind === "plain" && !isPaused;
}

/** The causes for which Redis refuses writes and answers reads. */
const OF_WRITES: ReadonlySet<Cause["kind"]> = new Set<Cause["kind"]>([
  "disk",
  "memory",
  "replica",
  "few-replicas",
]);

/** How many names without a queue a client may keep open, at some 5 kB each. */
const MOST_EMPTY = 500;

/** The database that a URL names; undefined if it names none. */
export function databaseOf(url: string): string | undefined {
  const { pathname, searchParams } = new URL(url);
  const database = searchParams.get("db") ?? decodeURIComponent(pathname.slice(1));
  return database === "" ? undefined : database;
}
