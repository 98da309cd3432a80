import type { CallOptions } from "../queue/call.ts";
import {
  checkDuration,
  checkInstant,
  checkKey,
  checkOptions,
  checkSignal,
  checkWhole,
} from "../queue/checks.ts";
import { hashOf, within } from "../queue/message/bucket.ts";
import type { OnlyIf } from "../queue/message/only-if.ts";
import { checkedHeaders, type MessageHeaders } from "../queue/message/headers.ts";
import { checkLane } from "../queue/flow.ts";
import { checkedConditions } from "./conditions.ts";
import type { Due, Offering } from "../delayed/offering/offering.ts";
import { Delay } from "../time/delay.ts";
import { LAST_DATE } from "../time/last-date.ts";

/**
 * Options of one offer. Those of an offer with headers, which only a reliable queue takes, are
 * `OfferOptions<MessageHeaders>`.
 *
 * An offer whose `signal` is aborted rejects with an {@link OfferError}, which says whether the
 * message may be stored, and whose `cause` is the signal's reason.
 */
export interface OfferOptions<Headers extends MessageHeaders = never> extends CallOptions {
  /**
   * A business key, such as `"order:42"`, by which the message can be cancelled, rescheduled and found: 1 to 200
   * bytes; must not look like a `MessageId`.
   *
   * In a queue, a key is held by at most one delayed or retrying message; it is free while its message is ready, in
   * flight or dead. Costs an entry of some 150 bytes in a HASH, and two commands; each retry costs two more. Defaults to
   * no key.
   */
  readonly key?: string;

  /**
   * Decides what happens if a delayed or retrying message holds the key. `"ignore"` leaves that message, and returns its
   * id. `"replace"` puts this message in its place. `"update"` does too, but leaves the deadline as it is. Nothing else
   * of the old message is kept: not its headers, and not its `onlyIf` or `deliverWithin`. Defaults to `"ignore"`.
   */
  readonly onDuplicate?: "ignore" | "replace" | "update";

  /**
   * With `"replace"`: how many milliseconds after its key was first offered the message is due at the latest, however
   * often it is replaced, and by whom: the earliest limit stays until the key is free.
   *
   * The first offer is the first one since the key was last free, with or without `maxWait`. Costs 8 bytes of the key's entry.
   * Defaults to no limit.
   */
  readonly maxWait?: number;

  /**
   * By how many milliseconds the message is later at most, a whole number up to 30 days: so that many messages for one instant
   * do not come at once. With a `key` it is the same delay each time, in every process; without, a random one. It is part
   * of the deadline that the offer returns. Costs nothing in Redis. Defaults to 0.
   */
  readonly spread?: number;

  /**
   * In a partitioned queue: messages with the same partition key, 1 to 200 bytes, are in the same partition. Always use
   * a key with the same partition key, since a key is unique only there; calls by key that do not name it ask all
   * partitions.
   *
   * Changes nothing in an ordinary queue until it gets partitions. With a `lane` it must be the lane. Defaults to the lane,
   * and without one to the key; a message with neither may be in any partition.
   */
  readonly partitionKey?: string;

  /**
   * What has to be true of a key of your own when the message is due: `{ key: "{orders}:42:status", is: "unpaid" }`.
   * Otherwise the message is dropped: its key is free, `counters` and `stats` count it, and the diagnostics channel
   * `delayline:dropped` tells of it.
   *
   * Redis asks it in the step that makes the message ready, and never again: a ready message and a retry are delivered
   * without. If Redis cannot say (a key of another type, an ACL), the message is delivered. Java's and older transfers do
   * not ask. Costs Redis some 3 us and a read when the message is due, and its bytes. Defaults to none.
   */
  readonly onlyIf?: OnlyIf;

  /**
   * For how many milliseconds after its deadline the message may become ready; later it is dropped, as with `onlyIf`.
   * That happens if no process moved messages meanwhile, or the queue was paused. What is ready in time waits for its
   * consumer however long. At least 1,000, unless the queue has `anyTime`: every message is moved some milliseconds late.
   * Costs 15 bytes. Defaults to no limit.
   */
  readonly deliverWithin?: number;

  /**
   * In a queue whose `flow` has lanes: the lane in which the message waits for its turn, such as a tenant, 1 to 100 bytes.
   * In a partitioned queue, all messages of a lane are in one partition. Other queues carry it along and ignore it. Costs its bytes and five more. Defaults to a lane without a name.
   */
  readonly lane?: string;

  /**
   * In a queue whose `flow` has lanes: a whole number from -100 to 100; of the messages that wait in its lane, the higher ones
   * become ready first. Those that are ready already are not overtaken. Costs eight bytes. Defaults to 0.
   */
  readonly priority?: number;

  /**
   * Only to a reliable queue: carried with the message, beside its payload, such as `{ traceparent: "..." }`. Each delivery
   * has them. 64 headers at most; names of 1 to 200 bytes; 8 KiB altogether.
   *
   * Costs their bytes in Redis, and seven more for each. Defaults to none.
   */
  readonly headers?: Headers;
}

/**
 * Checks the options of one offer; returns its key, the rule for a duplicate, its conditions, the hash of its key, and its
 * headers, which are an option only if the queue takes them. `anyTime` is the queue's option.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value.
 */
export function offerRule(
  options: OfferOptions<MessageHeaders>,
  { takesHeaders = false, anyTime = false }: { takesHeaders?: boolean; anyTime?: boolean } = {},
): Omit<Offering, "payload" | "due"> {
  checkOptions("offer option", options, takesHeaders ? WITH_HEADERS.ofOffer : PLAIN.ofOffer);
  checkSignal(options.signal);
  const { key, maxWait } = options;
  const rule = duplicateRule(options);
  const headers = takesHeaders ? checkedHeaders(options.headers) : undefined;
  const { onlyIf, deliverWithin } = checkedConditions(options, anyTime);
  const { lane, priority } = options;
  if (lane !== undefined) checkLane(lane);
  const hash = hashFor(options);
  if (priority !== undefined) checkWhole("priority", priority, -100, 100);
  // One literal: every offer passes here, and spreading several takes microseconds.
  return { key, rule, maxWait, onlyIf, deliverWithin, lane, priority, headers, hash };
}

/**
 * When a message is due that is spread.
 *
 * @throws {TypeError | RangeError} if `spread` is not legal.
 */
export function spreadOver(due: Due, { spread, key }: { spread?: number; key?: string }): Due {
  if (spread === undefined) return due;
  checkWhole("spread", spread, 0, MAX_SPREAD, " ms");
  const later =
    typeof key === "string" ? within(spread, key) : Math.floor(Math.random() * (spread + 1));
  if ("delay" in due) return { delay: due.delay.plus(later) };
  return { deadline: Math.min(due.deadline + later, LAST_DATE) };
}

/** Milliseconds. */
const MAX_SPREAD = 30 * 86_400_000;

function hashFor({ key, partitionKey, lane }: OfferOptions<MessageHeaders>): number | undefined {
  if (partitionKey !== undefined) checkKey(partitionKey, "partitionKey");
  if (lane !== undefined && partitionKey !== undefined && partitionKey !== lane) {
    throw new TypeError(
      `partitionKey must be the lane, which is in one partition, or left out, got ${JSON.stringify(partitionKey)} and the lane ${JSON.stringify(lane)}`,
    );
  }
  const text = partitionKey ?? lane ?? key;
  return text === undefined ? undefined : hashOf(text);
}

function duplicateRule(options: OfferOptions<MessageHeaders>): Offering["rule"] {
  const { key, onDuplicate = "ignore", maxWait } = options;
  if (key === undefined) {
    if (options.onDuplicate !== undefined) throw new TypeError("onDuplicate needs a key");
    if (maxWait !== undefined) throw new TypeError("maxWait needs a key");
    return undefined;
  }
  checkKey(key);
  if (!["ignore", "replace", "update"].includes(onDuplicate)) {
    throw new TypeError(
      `onDuplicate must be "ignore", "replace" or "update", got ${JSON.stringify(onDuplicate)}`,
    );
  }
  if (maxWait === undefined) return onDuplicate;
  if (onDuplicate !== "replace") {
    throw new TypeError(`maxWait goes with onDuplicate "replace", got "${onDuplicate}"`);
  }
  checkDuration("maxWait", maxWait);
  return onDuplicate;
}

/**
 * Checks the shape of one message of `offerMany`, and returns when it is due; {@link offerRule} checks its options.
 * `name` is what errors call it, `calledAt` when its delay began (`queueTime.now()`).
 *
 * @throws {TypeError | RangeError} naming the property, the rule and the value.
 */
export function checkNewMessage(
  name: string,
  message: unknown,
  {
    takesHeaders = false,
    anyTime = false,
    calledAt,
  }: { takesHeaders?: boolean; anyTime?: boolean; calledAt?: number } = {},
): Due {
  if (typeof message !== "object" || message === null) {
    throw new TypeError(
      `${name} must be an object, got ${message === null ? "null" : typeof message}`,
    );
  }
  const { ofMessage } = takesHeaders ? WITH_HEADERS : PLAIN;
  checkOptions(`property of ${name}`, message, ofMessage);
  if (!("payload" in message)) throw new TypeError(`${name} must have a payload`);
  const { delay, at } = message as { readonly delay?: unknown; readonly at?: unknown };
  if ((delay === undefined) === (at === undefined)) {
    const got = at === undefined ? "neither" : "both";
    throw new TypeError(`${name} must have either delay or at, got ${got}`);
  }
  if (at !== undefined) {
    return { deadline: checkInstant(`${name}.at`, at, { delay: "use delay", anyTime }) };
  }
  checkDuration(`${name}.delay`, delay, { instant: "use at", anyTime });
  return { delay: new Delay(delay, calledAt) };
}

const RULE_OPTIONS = [
  "key",
  "onDuplicate",
  "maxWait",
  "spread",
  "partitionKey",
  "onlyIf",
  "deliverWithin",
  "lane",
  "priority",
];

const PLAIN = namesWith(RULE_OPTIONS);
const WITH_HEADERS = namesWith([...RULE_OPTIONS, "headers"]);

/** The names that an offer and a message of `offerMany` may have. */
function namesWith(options: readonly string[]) {
  return { ofOffer: [...options, "signal"], ofMessage: ["payload", "delay", "at", ...options] };
}
