import { types } from "node:util";
import { checkInstant, checkOptions, checkWhole } from "../queue/checks.ts";
import {
  QUEUE_OPTIONS,
  queueSettings,
  type DelaylineOptions,
  type QueueOptions,
  type QueueSettings,
} from "../queue/options.ts";
import type { GroupSettings } from "../reliable/group/group.ts";
import {
  checkRetry,
  type RetryLadder,
  type RetryOptions,
} from "../reliable/consuming/retry-ladder.ts";

/** Options of a reliable queue's handle, besides those of any queue. */
export interface GroupOptions {
  /**
   * The consumer group of this handle. Each group receives every message; within a group, one consumer receives it.
   *
   * A group keeps every message in Redis until it has handled it. Destroy a group that is no longer needed
   * (`XGROUP DESTROY`). With two or more groups, each acknowledgement also checks the other groups. 1 to 200 bytes of
   * UTF-8. Defaults to `"default"`.
   */
  readonly group?: string;

  /**
   * Where a new group begins. `"0"`: with the oldest message that is still there. `"new"`: with the next message that
   * becomes ready. A date: with the messages that have become ready since.
   *
   * An existing group continues where it is. If one client has several handles of a group, the first one decides.
   * Defaults to `"0"`.
   */
  readonly start?: "0" | "new" | Date;

  /**
   * How long a process may be silent before other processes reclaim its messages, in milliseconds: 100 to 86,400,000.
   * It is also the lease of a delivery that was taken by hand, unless you extend it.
   *
   * A process gives three signs of life in this time, so a handler may run for longer. But a handler that blocks the
   * event loop for this long loses its lease. A shorter timeout makes messages ready again sooner after a crash, and
   * costs more beats. Defaults to 30,000.
   */
  readonly leaseTimeout?: number;

  /**
   * The most attempts of a message in one group: 1 to 1,000,000. If the last attempt fails or kills its consumer, the
   * message becomes a dead letter. Defaults to 8.
   */
  readonly maxAttempts?: number;

  /**
   * How long Redis remembers which messages were handled, in milliseconds: 0, or 1,000 to 2,592,000,000 (30 days).
   * `ReliableQueue.handled` then tells when, by which process and in which attempt. Set it in all consumers.
   *
   * Each acknowledgement also adds an entry of about 100 bytes, in the same step, and takes Redis two and a half times as long. A
   * queue or partition keeps at most 100,000 entries, about 10 MB; beyond that, the oldest are dropped. They hold ids and business
   * keys, but no payloads. With 0, Redis remembers nothing, and an acknowledgement costs nothing more. Defaults to 0.
   */
  readonly keepHandled?: number;

  /**
   * How long a message waits after a failed delivery: an array of pauses in milliseconds, the last of which repeats;
   * a growing pause, `{ initial, factor, max, jitter }`; or a function of the failed attempt's number and the error,
   * which returns milliseconds, or undefined to make the message a dead letter.
   *
   * `maxAttempts` alone decides how often a message is retried (once less), not the length of the array. A retrying
   * message costs its bytes and 300 to 500 more. Defaults to
   * `{ initial: 1000, factor: 2, max: 3_600_000, jitter: 0.2 }`.
   */
  readonly retry?: RetryOptions;

  /**
   * Whether each partition is consumed by one handler in one process at a time, so that messages with the same
   * `partitionKey` are handled one after another, across all processes. All consumers of the queue must set this
   * option.
   *
   * Only `subscribe` takes messages, once per client. The partitions are spread evenly over the processes. Another
   * process takes over the partitions of a dead one within 3 seconds. If a process was paused for longer than that
   * while a handler ran, the delivery's `signal` is aborted, and other systems can recognise it by its older `fence`.
   *
   * The queue has to be partitioned: without the option `partitions`, this client waits until another one creates them.
   *
   * It costs a connection for each partition that the process holds, and about 10 commands a second per process with 8
   * partitions and 3 processes. No message is handled while the number of partitions changes. A Redis user with limited
   * rights needs CLIENT LIST and CLIENT KILL. Defaults to `false`.
   */
  readonly exclusive?: boolean;

  /**
   * Whether a failed message holds up later ones with its key, in a queue that is consumed exclusively. The messages of one key
   * then stay in order even if some fail.
   *
   * The consumer keeps the failed message for its pause and handles it again, until it is acknowledged or becomes a dead letter.
   * Other keys go on. Up to 500 messages or 4 MB of a partition wait in the consumer's memory; beyond that, the whole partition
   * waits. Each message that waits costs two small scripts. Defaults to `false`: a failed message waits elsewhere, and later ones
   * overtake it.
   */
  readonly strict?: boolean;
}

/** `strict` needs `exclusive`. */
export type StrictIfExclusive = { readonly exclusive: boolean } | { readonly strict?: false };

/**
 * Options of a reliable queue's handle. An option that is left out has the value that an earlier handle of its group in this client
 * gave. The group's first handle in a client decides `leaseTimeout` and `maxAttempts`; another value is refused. `strict` needs
 * `exclusive`.
 */
export type ReliableQueueOptions<T = unknown> = QueueOptions<T> & GroupOptions & StrictIfExclusive;

/** The defaults, except those of `retry` (`DEFAULT_RETRY`), `exclusive` and `strict` (false). */
export const RELIABLE_DEFAULTS = {
  group: "default",
  start: "0",
  leaseTimeout: 30_000,
  maxAttempts: 8,
  keepHandled: 0,
} as const satisfies ReliableQueueOptions;

/** The checked options of a reliable queue's handle, with defaults filled in. */
export interface ReliableSettings<T> {
  readonly queue: QueueSettings<T>;
  readonly group: GroupSettings;
  readonly retry: RetryLadder;
  readonly exclusive: boolean;
  readonly strict: boolean;
}

/**
 * Returns the settings of a handle: its own options, else the client's, else the defaults.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal.
 */
export function reliableSettings<T>(
  options: ReliableQueueOptions<T> = {},
  client: DelaylineOptions = {},
): ReliableSettings<T> {
  checkOptions("reliable queue option", options, [...QUEUE_OPTIONS, ...GROUP_OPTIONS]);
  const {
    group = RELIABLE_DEFAULTS.group,
    start = RELIABLE_DEFAULTS.start,
    leaseTimeout = RELIABLE_DEFAULTS.leaseTimeout,
    maxAttempts = RELIABLE_DEFAULTS.maxAttempts,
    keepHandled = RELIABLE_DEFAULTS.keepHandled,
    retry,
    exclusive = false,
    strict = false,
    ...rest
  } = options;
  checkGroup(group);
  checkWhole("leaseTimeout", leaseTimeout, 100, DAY, " ms");
  checkWhole("maxAttempts", maxAttempts, 1, 1_000_000);
  if (keepHandled !== 0) checkWhole("keepHandled", keepHandled, 1000, 30 * DAY, " ms, or 0");
  const queue = queueSettings(rest, client);
  if (typeof exclusive !== "boolean") {
    throw new TypeError(`exclusive must be a boolean, got ${typeof exclusive}`);
  }
  if (exclusive && queue.interop !== "none") {
    throw new TypeError(`interop must be "none" for a partitioned queue, got "${queue.interop}"`);
  }
  if (typeof strict !== "boolean") {
    throw new TypeError(`strict must be a boolean, got ${typeof strict}`);
  }
  if (strict && !exclusive) {
    throw new TypeError(
      "strict must be left out of a queue that is not exclusive, got true; set exclusive: true",
    );
  }
  return {
    queue,
    exclusive,
    strict,
    group: { group, start: startId(start), leaseTimeout, maxAttempts, keepHandled },
    retry: checkRetry(retry),
  };
}

function checkGroup(value: unknown): asserts value is string {
  if (typeof value !== "string") throw new TypeError(`group must be a string, got ${typeof value}`);
  if (!value.isWellFormed()) throw new TypeError("group must be well-formed Unicode");
  const bytes = Buffer.byteLength(value);
  if (bytes === 0 || bytes > 200) {
    throw new RangeError(`group must have 1 to 200 bytes of UTF-8, got ${bytes}`);
  }
}

/** Returns the id of the stream behind which a group begins. */
function startId(start: unknown): string {
  if (start === "0") return "0";
  if (start === "new") return "$";
  if (!types.isDate(start)) {
    throw new TypeError(
      `start must be "0", "new" or a Date, got ${typeof start === "string" ? `"${start}"` : typeof start}`,
    );
  }
  const at = checkInstant("start", start);
  // A group starts behind its id, so entries of that very millisecond need the last id of the one before.
  return at === 0 ? "0" : `${at - 1}-${LAST}`;
}

/** The greatest second half of an entry's id. */
const LAST = "18446744073709551615";

/** The names of the {@link GroupOptions}. */
export const GROUP_OPTIONS = [
  "group",
  "start",
  "leaseTimeout",
  "maxAttempts",
  "keepHandled",
  "retry",
  "exclusive",
  "strict",
];

const DAY = 86_400_000;
