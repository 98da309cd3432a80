import type { Codec } from "../codecs/codec.ts";
import type { CodecName } from "../codecs/built-in.ts";
import { resolveCodec } from "../codecs/built-in.ts";
import type { ConnectionOptions } from "../redis/client.ts";
import type { LentClient } from "../redis/lent-client.ts";
import { checkDuration, checkOptions, checkWhole } from "./checks.ts";

/** Options of every call that talks to Redis. */
export interface CallOptions {
  /**
   * Ends the wait; the promise then rejects with the signal's reason. What was sent already may be
   * carried out all the same.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of one queue. What is left out is taken from the client's options. */
export interface QueueOptions<T = unknown> {
  /**
   * How payloads become bytes: `"msgpack"`, `"json"`, `"string"`, `"bytes"`, or an object of your
   * own. `delayline/redisson` has those for what Redisson's other codecs write.
   *
   * JSON can be read in `redis-cli`; MessagePack is smaller and keeps dates and binary data. Both leave
   * out properties that are `undefined`; what else would change on the way (a `Map`, an `Error`, an instance
   * of a class without `toJSON`) JSON changes as `JSON.stringify` does, and MessagePack refuses with an
   * {@link EncodeError}. All who share a queue have to agree. Defaults to `"msgpack"`.
   */
  readonly codec?: CodecName | Codec<T>;

  /**
   * Whether this process moves due messages of the queue.
   *
   * `true` costs two connections per process, each with a PING or TIME a second, and per idle queue two
   * scripts a minute. Processes that only produce can do without, as long as some process moves. One
   * that takes costs the same without it, since it has to know whether the queue is paused.
   *
   * Defaults to `true`.
   */
  readonly transfer?: boolean;

  /**
   * `"redisson"` keeps the insertion-order LIST exactly as Redisson does, for queues on which Java
   * calls `size`, `readAll`, `poll` or `remove`. (Java's `offer` and `take` need no option.)
   *
   * Each message is then stored twice, and one that leaves from the middle of the LIST costs O(N).
   * All Node processes of the queue have to agree. Defaults to `"none"`.
   */
  readonly interop?: "none" | "redisson";

  /**
   * The largest payload in bytes, after encoding. A larger one is refused before anything is sent.
   *
   * Raising it makes Redis and every worker slower for as long as a large message passes.
   * Defaults to 1,048,576 (1 MiB).
   */
  readonly maxPayloadBytes?: number;

  /**
   * That the queue is in partitions, and how many it gets if it has none yet: 1 to 256. After that Redis knows their
   * number, and `Delayline.setPartitions` changes it; what is said here is not looked at any more. All who share the
   * queue have to say that it is in partitions.
   *
   * What concerns one message costs as much as in an ordinary queue; what concerns all goes to each partition. A
   * process has one key more to look at in each script, and sends a sign of life every three seconds. Defaults to an
   * ordinary queue, which is in one place.
   */
  readonly partitions?: number;
}

/** Options of a handle that takes messages. */
export interface ConsumerOptions<T = unknown> extends QueueOptions<T> {
  /**
   * Whether each partition is consumed by one process at a time, by one handler: so messages of one `partitionKey` are
   * handled one after another, across all processes that say so. All who consume the queue have to.
   *
   * Messages are taken by `subscribe` alone, once in each client. The partitions are shared out among the processes
   * evenly; who takes one over from a process that has died does so within 3 seconds. A process that was paused for
   * longer than that, with a handler at work, is told by the handler's `signal`, and its `fence` tells others. While the
   * number of partitions changes nothing becomes ready, and what is ready is handled first.
   *
   * The queue is in partitions: without `partitions` this client waits until another one creates them. It costs a
   * connection for each partition that the process holds, and with 8 partitions and 3 processes some 10 commands a second in
   * each. User names with rights of their own need CLIENT LIST and CLIENT KILL. Defaults to `false`.
   */
  readonly exclusive?: boolean;
}

/** Where one Redis, or one Cluster, is. */
export type RedisAddress = string | ConnectionOptions | LentClient;

/** Options of a client. Those of {@link QueueOptions} hold for queues that do not say otherwise. */
export interface DelaylineOptions extends Omit<QueueOptions, "partitions"> {
  /**
   * Where Redis is: a URL, ioredis options, both (`{ url, ...options }`; what the options say is added to
   * the URL), or a `Redis` / `Cluster` of yours.
   *
   * One of yours stays yours: it carries the calls that you await, `close()` never ends it, and its
   * own options hold for these calls. Subscribing, blocking and background work is done on
   * connections of our own, made with the same address and credentials, but without
   * `commandTimeout`, `blockingTimeout` and `socketTimeout`, which lose messages. Give yours an
   * `error` listener: without one, ioredis prints its connection errors. What it needs to survive a
   * failover (`failoverDetector`, `reconnectOnError`, `slotsRefreshInterval`) is in
   * `docs/guide/connections.md`; a warning says what it lacks.
   *
   * A list of such addresses names several servers, for queues in partitions: partition p is on server p mod n, and
   * the list has to be the same in every process. Ordinary queues are on the first. Each server costs connections of
   * its own.
   *
   * Defaults to `"redis://localhost:6379"`.
   */
  readonly redis?: RedisAddress | readonly RedisAddress[];

  /**
   * How long a call may take that you await, in milliseconds: 1 to 2,147,483,647. It covers the time to
   * connect, and the attempts while a failover passes. Then the call rejects, and says whether it may
   * have been carried out.
   *
   * Calls that work in steps (`readAll`, `contains`, `removeAll`, `cancelWhere`, `drain`, `putMany`, `requeue`,
   * `redrive`, `makePlain`, iterations) have this time for each step. Waits for messages (`take`, `takeMany`, `poll` and `pollFromAny` with
   * a timeout, `subscribe`, `for await`) have limits of their own. An offer that is to ride out a failover needs
   * more than the failover takes.
   *
   * Defaults to 5,000.
   */
  readonly callTimeout?: number;

  /**
   * How long `close()` may try to reach Redis for what it still has in hand, in milliseconds.
   *
   * Running handlers and loops are waited for beside it: see `close({ timeout })`. Defaults to 10,000.
   */
  readonly closeTimeout?: number;
}

/** What holds where nothing is said. */
export const DEFAULTS = {
  redis: "redis://localhost:6379",
  codec: "msgpack",
  transfer: true,
  interop: "none",
  maxPayloadBytes: 1_048_576,
  callTimeout: 5_000,
  closeTimeout: 10_000,
} as const satisfies Required<DelaylineOptions>;

/** A queue's options, complete and checked. */
export interface QueueSettings<T> {
  readonly codec: Codec<T>;
  readonly transfer: boolean;
  readonly interop: "none" | "redisson";
  readonly maxPayloadBytes: number;
  /** How many partitions it gets, if it is in partitions; undefined: it is an ordinary queue. */
  readonly partitions: number | undefined;
}

/**
 * A queue's settings: its own options, then the client's, then the defaults.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export function queueSettings<T>(
  options: QueueOptions<T> = {},
  client: DelaylineOptions = {},
): QueueSettings<T> {
  checkOptions("queue option", options, QUEUE_OPTIONS);
  const transfer = options.transfer ?? client.transfer ?? DEFAULTS.transfer;
  if (typeof transfer !== "boolean") {
    throw new TypeError(`transfer must be a boolean, got ${shown(transfer)}`);
  }
  const interop = options.interop ?? client.interop ?? DEFAULTS.interop;
  if (interop !== "none" && interop !== "redisson") {
    throw new TypeError(`interop must be "none" or "redisson", got ${shown(interop)}`);
  }
  const maxPayloadBytes =
    options.maxPayloadBytes ?? client.maxPayloadBytes ?? DEFAULTS.maxPayloadBytes;
  checkWhole("maxPayloadBytes", maxPayloadBytes, 1, MAX_STRING_BYTES);
  // A client's codec is for payloads of any type.
  const codec = options.codec ?? (client.codec as CodecName | Codec<T> | undefined);
  const { partitions } = options;
  if (partitions !== undefined) {
    checkWhole("partitions", partitions, 1, MAX_PARTITIONS);
    if (interop !== "none")
      throw new TypeError(`interop must be "none" for a queue in partitions, got "${interop}"`);
  }
  return {
    codec: resolveCodec<T>(codec ?? DEFAULTS.codec),
    transfer,
    interop,
    maxPayloadBytes,
    partitions,
  };
}

/**
 * The settings of a handle that takes messages.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export function consumerSettings<T>(
  { exclusive = false, ...options }: ConsumerOptions<T> = {},
  client: DelaylineOptions = {},
): QueueSettings<T> & { readonly exclusive: boolean } {
  const settings = queueSettings(options, client);
  if (typeof exclusive !== "boolean") {
    throw new TypeError(`exclusive must be a boolean, got ${shown(exclusive)}`);
  }
  const { interop } = settings;
  if (exclusive && interop !== "none") {
    throw new TypeError(`interop must be "none" for a queue in partitions, got "${interop}"`);
  }
  return { ...settings, exclusive };
}

/** The client's own options, complete and checked. The address is left to the connections. */
export function clientSettings(options: DelaylineOptions): {
  readonly callTimeout: number;
  readonly closeTimeout: number;
} {
  checkOptions("option", options, CLIENT_OPTIONS);
  const callTimeout = options.callTimeout ?? DEFAULTS.callTimeout;
  checkWhole("callTimeout", callTimeout, 1, MAX_TIMEOUT);
  const closeTimeout = options.closeTimeout ?? DEFAULTS.closeTimeout;
  checkDuration("closeTimeout", closeTimeout);
  return { callTimeout, closeTimeout };
}

// The longest timeout of Node, 24.8 days.
const MAX_TIMEOUT = 2 ** 31 - 1;

// Redis's default proto-max-bulk-len.
const MAX_STRING_BYTES = 512 * 1024 * 1024;

/** The names of the {@link QueueOptions}. */
export const QUEUE_OPTIONS = ["codec", "transfer", "interop", "maxPayloadBytes", "partitions"];
/** A client may say what holds for all its queues, but how many partitions each has. */
const CLIENT_OPTIONS = [
  ...QUEUE_OPTIONS.filter((name) => name !== "partitions"),
  "redis",
  "callTimeout",
  "closeTimeout",
];

/** A partition's number has to fit into a byte. */
export const MAX_PARTITIONS = 256;

function shown(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : String(value);
}
