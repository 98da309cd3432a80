import { checkOptions, checkWhole } from "../queue/checks.ts";
import {
  consumerSettings,
  QUEUE_OPTIONS,
  type ConsumerOptions,
  type DelaylineOptions,
  type QueueSettings,
} from "../queue/options.ts";
import type { GroupSettings } from "./group/group.ts";
import { checkRetry, type RetryLadder, type RetryOptions } from "./consuming/retry-ladder.ts";

/** Options of a reliable queue. Those of `QueueOptions` are the same for any handle of the queue. */
export interface ReliableQueueOptions<T = unknown> extends ConsumerOptions<T> {
  /**
   * The consumer group of this handle. Each group gets every message, and inside a group one consumer does.
   *
   * A group that exists holds every message until it has handled it: destroy one that nobody needs any more
   * (`XGROUP DESTROY`). A second group makes each acknowledgement look at the others. 1 to 200 bytes of UTF-8.
   * Defaults to `"default"`.
   */
  readonly group?: string;

  /**
   * Where a group begins that does not exist yet: `"0"`: with everything that is still there; `"new"`: with what
   * becomes ready from now on; a date: with what has become ready since. Of several handles of a group in one client
   * the first one's counts. Defaults to `"0"`.
   */
  readonly start?: "0" | "new" | Date;

  /**
   * How long a process may give no sign of life until others take what it has in hand, in milliseconds: 100 to
   * 86,400,000. It says so three times in this time, so a handler may run for longer; but one that blocks the event
   * loop for so long loses its lease. It is also how long a delivery lasts that was taken by hand, unless it is
   * extended.
   *
   * A shorter one brings messages back sooner when a process has died, and costs more beats. Defaults to 30,000.
   */
  readonly visibilityTimeout?: number;

  /**
   * How often a message is delivered at most. One that fails in its last delivery becomes a dead letter, and so
   * does one that has killed so many processes. 1 to 1,000,000. Defaults to 8.
   */
  readonly maxDeliveries?: number;

  /**
   * How long a message waits after a failed delivery: pauses in milliseconds, of which the last one repeats; a
   * growing pause, `{ initial, factor, max, jitter }`; or a function of the attempt that failed and the error,
   * which returns milliseconds, or undefined for a message that is to be dead at once.
   *
   * A message that waits costs its bytes and some 250 more. Defaults to
   * `{ initial: 1000, factor: 2, max: 3_600_000, jitter: 0.2 }`.
   */
  readonly retry?: RetryOptions;

  /**
   * Whether a message that failed holds up those behind it, in a queue that is consumed exclusively: it stays in hand
   * for its pause and is handed out again, until it succeeds, is rejected or becomes a dead letter. Then the order of
   * the messages of one key is kept even if some of them fail.
   *
   * The price: one message that fails holds up its whole partition, so all keys in it, for the sum of its pauses. Give
   * `retry` short ones. Defaults to `false`: it waits aside, and later ones overtake it.
   */
  readonly strict?: boolean;
}

/** What holds where nothing is said; `DEFAULT_RETRY` of the ladder stands beside it. */
export const RELIABLE_DEFAULTS = {
  group: "default",
  start: "0",
  visibilityTimeout: 30_000,
  maxDeliveries: 8,
} as const satisfies ReliableQueueOptions;

/** A reliable queue's options, complete and checked. */
export interface ReliableSettings<T> {
  readonly queue: QueueSettings<T>;
  readonly group: GroupSettings;
  readonly retry: RetryLadder;
  readonly exclusive: boolean;
  readonly strict: boolean;
}

/**
 * A reliable queue's settings: its own options, then the client's, then the defaults.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal.
 */
export function reliableSettings<T>(
  options: ReliableQueueOptions<T> = {},
  client: DelaylineOptions = {},
): ReliableSettings<T> {
  checkOptions("reliable queue option", options, [...QUEUE_OPTIONS, ...OWN_OPTIONS]);
  const {
    group = RELIABLE_DEFAULTS.group,
    start = RELIABLE_DEFAULTS.start,
    visibilityTimeout = RELIABLE_DEFAULTS.visibilityTimeout,
    maxDeliveries = RELIABLE_DEFAULTS.maxDeliveries,
    retry,
    strict = false,
    ...rest
  } = options;
  checkGroup(group);
  checkWhole("visibilityTimeout", visibilityTimeout, 100, DAY);
  checkWhole("maxDeliveries", maxDeliveries, 1, 1_000_000);
  const { exclusive, ...queue } = consumerSettings(rest, client);
  if (typeof strict !== "boolean") {
    throw new TypeError(`strict must be a boolean, got ${typeof strict}`);
  }
  if (strict && !exclusive) {
    throw new TypeError("strict must be left out of a queue that is not exclusive, got true");
  }
  return {
    queue,
    exclusive,
    strict,
    group: { group, start: startId(start), visibilityTimeout, maxDeliveries },
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

/** The id in the stream behind which a group begins. */
function startId(start: unknown): string {
  if (start === "0") return "0";
  if (start === "new") return "$";
  if (!(start instanceof Date)) {
    throw new TypeError(
      `start must be "0", "new" or a Date, got ${typeof start === "string" ? `"${start}"` : typeof start}`,
    );
  }
  const at = start.getTime();
  if (Number.isNaN(at)) throw new RangeError("start must be a valid date, got Invalid Date");
  if (at < 0) throw new RangeError(`start must not be before 1970, got ${start.toISOString()}`);
  // A group gets what stands behind the id, and what became ready in that very millisecond is meant, too.
  return at === 0 ? "0" : `${at - 1}-${LAST}`;
}

/** The greatest number that the second half of an entry's id can be. */
const LAST = "18446744073709551615";

const OWN_OPTIONS = [
  "group",
  "start",
  "visibilityTimeout",
  "maxDeliveries",
  "retry",
  "exclusive",
  "strict",
];

const DAY = 86_400_000;
