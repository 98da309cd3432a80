import {
  checkDuration,
  checkInstant,
  checkKey,
  checkOptions,
  checkSignal,
  checkWhole,
} from "../queue/checks.ts";
import { hashOf, within } from "../queue/message/bucket.ts";
import { checkedHeaders, type MessageHeaders } from "../queue/message/headers.ts";
import { checkLane } from "../queue/flow.ts";
import type { NewMessage, OfferOptions } from "../queue/new-message.ts";
import { checkedConditions } from "./conditions.ts";
import type { Due, Offering } from "../queue/offering.ts";
import { Delay } from "../time/delay.ts";
import { LAST_DATE } from "../time/last-date.ts";

/**
 * Checks the options of one offer; returns its key, the rule for a duplicate, its conditions, the hash of its key, and its
 * headers, which are an option only if the queue takes them. `anyTime` and `maxPayloadBytes` are the queue's options.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value.
 */
export function offerRule(
  options: OfferOptions<MessageHeaders>,
  { takesHeaders = false, anyTime = false, maxPayloadBytes = 0 }: RuleOfQueue = {},
): Omit<Offering, "payload" | "due"> {
  checkOptions("offer option", options, takesHeaders ? WITH_HEADERS.ofOffer : PLAIN.ofOffer);
  checkSignal(options.signal);
  const { key, maxWait } = options;
  const rule = duplicateRule(options, takesHeaders, maxPayloadBytes);
  const once = options.once === undefined ? undefined : keptFor(options, takesHeaders);
  const headers = takesHeaders ? checkedHeaders(options.headers) : undefined;
  const { onlyIf, deliverWithin } = checkedConditions(options, anyTime);
  const { lane, priority } = options;
  if (lane !== undefined) checkLane(lane);
  const hash = hashFor(options);
  if (priority !== undefined) checkWhole("priority", priority, -100, 100);
  // One literal: every offer passes here, and spreading several takes microseconds.
  return { key, rule, maxWait, once, onlyIf, deliverWithin, lane, priority, headers, hash };
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

interface RuleOfQueue {
  readonly takesHeaders?: boolean;
  readonly anyTime?: boolean;
  readonly maxPayloadBytes?: number;
}

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

function duplicateRule(
  options: OfferOptions<MessageHeaders>,
  isReliable: boolean,
  maxPayloadBytes: number,
): Offering["rule"] {
  const { key, onDuplicate = "ignore", maxWait, maxCollected = 100 } = options;
  if (key === undefined) {
    for (const name of ["onDuplicate", "maxWait", "maxCollected"] as const) {
      if (options[name] !== undefined) throw new TypeError(`${name} needs a key`);
    }
    return undefined;
  }
  checkKey(key);
  if (!["ignore", "replace", "update", "collect"].includes(onDuplicate)) {
    throw new TypeError(
      `onDuplicate must be "ignore", "replace", "update" or "collect", got ${JSON.stringify(onDuplicate)}`,
    );
  }
  if (options.maxCollected !== undefined && onDuplicate !== "collect") {
    throw new TypeError(`maxCollected goes with onDuplicate "collect", got "${onDuplicate}"`);
  }
  if (maxWait !== undefined) {
    if (onDuplicate !== "replace" && onDuplicate !== "collect") {
      throw new TypeError(
        `maxWait goes with onDuplicate "replace" or "collect", got "${onDuplicate}"`,
      );
    }
    checkDuration("maxWait", maxWait);
  }
  if (onDuplicate !== "collect") return onDuplicate;
  if (!isReliable) {
    throw new TypeError(
      'onDuplicate "collect" needs a reliable queue: a ready message of a plain one is one payload',
    );
  }
  checkWhole("maxCollected", maxCollected, 2, 1000);
  return `collect,${maxCollected},${maxPayloadBytes}`;
}

/**
 * For how many milliseconds after its message was handled a key stays taken.
 *
 * @throws {TypeError | RangeError} if `once` is not legal here.
 */
function keptFor(
  { key, once, onDuplicate = "ignore" }: OfferOptions<MessageHeaders>,
  isReliable: boolean,
): number {
  if (!isReliable) {
    throw new TypeError(
      "once is an option of reliable queues: a message of a plain queue is gone once it is taken, and nothing tells when it was handled; use getReliableQueue",
    );
  }
  if (key === undefined) throw new TypeError("once needs a key");
  if (onDuplicate !== "ignore") {
    throw new TypeError(
      `once goes with onDuplicate "ignore", got "${onDuplicate}": what is offered while a handler runs would be lost; for the last change leave once out, and consume with exclusive`,
    );
  }
  if (once === "handled") return 0;
  if (typeof once !== "object" || (once as typeof once | null) === null) {
    throw new TypeError(`once must be "handled" or { for: ms }, got ${JSON.stringify(once)}`);
  }
  checkOptions("property of once", once, ["for"]);
  checkWhole("once.for", once.for, 0, MAX_KEPT, " ms");
  return once.for;
}

/** Milliseconds. */
const MAX_KEPT = 365 * 86_400_000;

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

/**
 * Checks a message that is offered in the same step as something else; returns when it is due, and its options. `maxWait`
 * limits those that replace it. Otherwise as {@link checkNewMessage} and {@link offerRule}.
 *
 * @throws {TypeError | RangeError} naming the property, the rule and the value.
 */
export function checkNext(
  name: string,
  message: unknown,
  queue: { takesHeaders: boolean; anyTime: boolean; calledAt: number },
): Omit<Offering, "payload"> {
  const due = checkNewMessage(name, message, queue);
  const { payload: _, delay: __, at: ___, maxWait, ...rule } = message as NewMessage<unknown>;
  if (rule.onDuplicate !== undefined) {
    throw new TypeError(
      `${name}.onDuplicate cannot be used: a key that another message holds is left to that one`,
    );
  }
  if (rule.once !== undefined) {
    throw new TypeError(
      `${name}.once cannot be used: what follows a message is not looked for among those that are ready, running or handled`,
    );
  }
  const checked = offerRule(rule, queue);
  if (maxWait !== undefined) {
    if (checked.key === undefined) throw new TypeError("maxWait needs a key");
    checkDuration("maxWait", maxWait);
  }
  return { due: spreadOver(due, rule), ...checked, maxWait };
}

const RULE_OPTIONS = [
  "key",
  "onDuplicate",
  "maxCollected",
  "maxWait",
  "once",
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
