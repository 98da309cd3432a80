import type { Codec } from "../codecs/codec.ts";
import type { CodecName, CodecNameOf } from "../codecs/built-in.ts";
import { resolveCodec } from "../codecs/built-in.ts";
import type { RedisConnectionOptions } from "../redis/address.ts";
import type { LentClient } from "../redis/lent-client.ts";
import { BusyWait } from "../time/busy-wait.ts";
import { checkDuration, checkOptions, checkWhole } from "./checks.ts";

/**
 * Options of one queue.
 *
 * An option that a handle leaves out (except `transfer`) has the value that an earlier handle of the queue in this client gave, or
 * else the client's. The queue's first handle in a client decides `codec` and `interop`; another value is refused.
 */
export interface QueueOptions<T = unknown> {
  /**
   * How payloads become bytes: `"msgpack"`, `"json"`, `"string"`, `"bytes"`, or a codec of your own.
   * `delayline/redisson` has codecs for what Redisson's other codecs write.
   *
   * JSON is readable in `redis-cli`; MessagePack is smaller and keeps dates and binary data. Both leave out properties
   * that are `undefined`. Values that would not survive (a `Map`, an `Error`, an instance of a class without `toJSON`)
   * are written by JSON as by `JSON.stringify`; MessagePack refuses them with an `EncodeError`.
   *
   * All processes that share a queue must use the same codec, and all handles in a client the same object. Defaults to
   * `"msgpack"`.
   */
  readonly codec?: CodecNameOf<T> | Codec<T>;

  /**
   * Whether this process moves due messages of the queue. A process that only offers can turn it off, as long as others move them.
   *
   * `true` costs two connections per process, the signs of life of {@link DelaylineOptions.heartbeat}, and two scripts a minute,
   * which all idle queues share. `false` saves nothing in a process that takes: it still has to know whether the queue is paused,
   * and without wake-ups of its own it blocks for two seconds at a time. A process moves them if any of its handles says so or
   * leaves the option out.
   *
   * Defaults to `true`.
   */
  readonly transfer?: boolean;

  /**
   * `"redisson"` keeps the insertion-order LIST exactly as Redisson does, for queues on which Java calls `size`,
   * `readAll`, `poll` or `remove`. (Java's `offer` and `take` need no option.)
   *
   * Each message is then stored twice, and removing one from the middle of the LIST costs O(N). All Node processes of
   * the queue must set the same value. Defaults to `"none"`.
   */
  readonly interop?: "none" | "redisson";

  /**
   * The size of the largest payload in bytes, after encoding: 1 to 536,870,912 (512 MiB). A larger one is refused
   * before anything is sent.
   *
   * A large message slows down Redis and every worker while it passes. Defaults to 1,048,576 (1 MiB).
   */
  readonly maxPayloadBytes?: number;

  /**
   * Whether offering and rescheduling accept every delay and every instant, even those that are nearly always mistakes.
   *
   * `false` refuses a delay above 30 years (an instant), a number below 100,000,000,000 as an instant (a delay, or seconds), an
   * instant after the year 9999 (microseconds), a date made from seconds, and a `deliverWithin` below 1,000 (seconds). With `true`
   * such a mistake goes unnoticed: the message is delivered at once, in decades, or never. Defaults to `false`.
   */
  readonly anyTime?: boolean;

  /**
   * Divides the queue into partitions: this many if it has none yet, 1 to 256. Once they exist, Redis holds their
   * number, this value is ignored, and `Delayline.setPartitions` changes the number.
   *
   * Even without this option, a process follows when the queue gets partitions. One that only offers notices within 30 seconds; the
   * messages that it offered until then move into the partitions.
   *
   * A call for one message costs as much as in an ordinary queue; a call for all messages goes to each partition. Each
   * script reads one more key, and each process sends a sign of life every three seconds. Defaults to an ordinary
   * queue, without partitions.
   */
  readonly partitions?: number;
}

/** The address of one Redis, or of one Cluster. */
export type RedisAddress = string | RedisConnectionOptions | LentClient;

/** Options of a client. Those of {@link QueueOptions} apply to its queues, unless a handle's options differ. */
export interface DelaylineOptions extends Omit<QueueOptions, "partitions"> {
  /**
   * The address of Redis: a URL, ioredis options, both (`{ url, ...options }`: the options add to the URL), or your own
   * `Redis` or `Cluster`.
   *
   * Your own client carries the calls that you await, with its own options. `close()` never ends it. Subscribing,
   * blocking and background work use separate connections with the same address and credentials, but without
   * `commandTimeout`, `blockingTimeout` and `socketTimeout`, which lose messages. Give your client an `error` listener:
   * without one, ioredis prints its connection errors. `docs/guide/connections.md` lists the options that it needs to
   * survive a failover (`failoverDetector`, `reconnectOnError`, `slotsRefreshInterval`); a process warning names a
   * missing one.
   *
   * A list of addresses names several servers, for partitioned queues: partition p is on server p mod n. The list must
   * be the same in every process. Ordinary queues are on the first server. Each server costs its own connections.
   *
   * Defaults to `"redis://localhost:6379"`.
   */
  readonly redis?: RedisAddress | readonly RedisAddress[];

  /**
   * How long a call that you await may take, in milliseconds: 1 to 2,147,483,647. After that it rejects; its error says
   * whether Redis may have carried it out. While bytes move on its connection, a call may take up to ten times as long.
   *
   * So a large payload gets through a slow link, while a dead link gets no more time. A `signal` is a hard limit.
   *
   * The limit includes the time to connect, and further attempts during a failover. Calls that work in steps
   * (`readAll`, `contains`, `removeAll`, `cancelWhere`, `drain`, `putMany`, `requeue`, `redrive`, `makePlain`,
   * iterations) have this time for each step. Waits for messages (`take`, `takeMany`, `poll` and `pollFromAny` with a
   * timeout, `subscribe`, `for await`) have their own limits. To let an offer survive a failover, make this longer than
   * the failover.
   *
   * Defaults to 5,000.
   */
  readonly callTimeout?: number;

  /**
   * How long `close()` may try to reach Redis to finish its work, in milliseconds.
   *
   * The wait for running handlers and loops has its own bound: `close({ handlerTimeout })`. Defaults to 10,000.
   */
  readonly unreachableTimeout?: number;

  /**
   * How often an idle process checks the connection that receives wake-ups, in milliseconds: 1,000 to 60,000. If that
   * connection has died silently, messages are late by at most this time plus two seconds.
   *
   * Costs one command each time, for all queues together: 0.5 a second by default. A connection that owes a reply is
   * watched each second, whatever this says. `docs/guide/connections.md` has the figures. Defaults to 2,000.
   */
  readonly heartbeat?: number;

  /**
   * How many milliseconds of each second this process may spend checking the time right before deadlines: 0 to 1,000. Node's timers
   * alone are a millisecond or two late.
   *
   * 10 is a hundredth of a core: enough for ten deadlines a second. The denser the deadlines, the shorter each check. 1,000 checks
   * before every deadline, which costs a tenth to a quarter of a millisecond of processor time each; with 10, at 200 and 2,000
   * messages a second, the median is some 0.3 ms later. 0 never checks, which makes messages another 0.3 ms later. Defaults to 10.
   */
  readonly busyWait?: number;

  /**
   * What to do when Redis went back to an older copy of its data: a restored backup, or a replica that was more than five seconds
   * behind. Messages that were handled or cancelled after that copy was made come again, and overdue messages come at once.
   *
   * `"report"` emits the event `restored`. `"pause"` also pauses all queues of this client, for every process, before it moves or
   * takes anything; `resume` lets them go on. `docs/operations/restoring.md` says what Delayline can notice, and what to do. Costs
   * one script per queue after the connection to Redis was lost, and nothing otherwise. Defaults to `"report"`.
   */
  readonly onRestore?: OnRestore;
}

/** What to do when Redis went back to an older copy of its data. */
export type OnRestore = "report" | "pause";

/** The defaults of all options of a client. */
export const DEFAULTS = {
  redis: "redis://localhost:6379",
  codec: "msgpack",
  transfer: true,
  interop: "none",
  maxPayloadBytes: 1_048_576,
  anyTime: false,
  callTimeout: 5_000,
  unreachableTimeout: 10_000,
  heartbeat: 2_000,
  busyWait: 10,
  onRestore: "report",
} as const satisfies Required<DelaylineOptions>;

/** A queue's options, complete and checked. */
export interface QueueSettings<T> {
  readonly codec: Codec<T>;
  readonly transfer: boolean;
  readonly interop: "none" | "redisson";
  readonly maxPayloadBytes: number;
  readonly anyTime: boolean;
  /** How many partitions to create, if the handle is one of a partitioned queue. */
  readonly partitions: number | undefined;
}

/**
 * Resolves a queue's settings: its own options come before the client's, and those before the defaults.
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
  const anyTime = options.anyTime ?? client.anyTime ?? DEFAULTS.anyTime;
  if (typeof anyTime !== "boolean") {
    throw new TypeError(`anyTime must be a boolean, got ${shown(anyTime)}`);
  }
  // The type of the client's codec is not known here: it applies to all its queues.
  const codec = options.codec ?? (client.codec as CodecName | Codec<T> | undefined);
  const { partitions } = options;
  if (partitions !== undefined) {
    checkWhole("partitions", partitions, 1, MAX_PARTITIONS);
    if (interop !== "none")
      throw new TypeError(`interop must be "none" for a partitioned queue, got "${interop}"`);
  }
  return {
    codec: resolveCodec<T>(codec ?? DEFAULTS.codec),
    transfer,
    interop,
    maxPayloadBytes,
    anyTime,
    partitions,
  };
}

/**
 * Resolves the client's own options. The connections check the address.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export function clientSettings(options: DelaylineOptions): {
  readonly callTimeout: number;
  readonly unreachableTimeout: number;
  readonly heartbeat: number;
  readonly busyWait: BusyWait;
  readonly onRestore: OnRestore;
} {
  checkOptions("option", options, CLIENT_OPTIONS);
  const callTimeout = options.callTimeout ?? DEFAULTS.callTimeout;
  checkWhole("callTimeout", callTimeout, 1, MAX_TIMEOUT, " ms");
  const unreachableTimeout = options.unreachableTimeout ?? DEFAULTS.unreachableTimeout;
  checkDuration("unreachableTimeout", unreachableTimeout);
  const heartbeat = options.heartbeat ?? DEFAULTS.heartbeat;
  checkWhole("heartbeat", heartbeat, 1000, 60_000, " ms");
  const busyWait = options.busyWait ?? DEFAULTS.busyWait;
  checkWhole("busyWait", busyWait, 0, 1000, " ms");
  const onRestore = options.onRestore ?? DEFAULTS.onRestore;
  if (onRestore !== "report" && onRestore !== "pause") {
    throw new TypeError(`onRestore must be "report" or "pause", got ${shown(onRestore)}`);
  }
  return {
    callTimeout,
    unreachableTimeout,
    heartbeat,
    busyWait: new BusyWait(busyWait),
    onRestore,
  };
}

// Node's longest timeout, 24.8 days.
const MAX_TIMEOUT = 2 ** 31 - 1;

// Redis's default proto-max-bulk-len.
const MAX_STRING_BYTES = 512 * 1024 * 1024;

/** The names of the {@link QueueOptions}. */
export const QUEUE_OPTIONS = [
  "codec",
  "transfer",
  "interop",
  "maxPayloadBytes",
  "anyTime",
  "partitions",
];
/** A client's options cover all options of its queues, except the number of partitions. */
const CLIENT_OPTIONS = [
  "redis",
  ...QUEUE_OPTIONS.filter((name) => name !== "partitions"),
  "callTimeout",
  "unreachableTimeout",
  "heartbeat",
  "busyWait",
  "onRestore",
];

/** The last partition's number fits into a byte. */
export const MAX_PARTITIONS = 256;

function shown(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : String(value);
}
