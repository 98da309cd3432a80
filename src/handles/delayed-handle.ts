import { offers } from "../observe/events.ts";
import {
  callOf,
  checkCall,
  checkFind,
  type Call,
  type CallOptions,
  type FindOptions,
} from "../queue/call.ts";
import type { InstantLike } from "../queue/instant.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import type { MessageId } from "../queue/message/message.ts";
import {
  checkDuration,
  checkFunction,
  checkIdOrKey,
  checkInstant,
  checkIterable,
  checkKey,
  checkOptions,
  checkSignal,
  checkWhere,
  checkWhole,
  type DurationHints,
} from "../queue/checks.ts";
import {
  hasOffer,
  type NewMessage,
  type OfferOptions,
  type OffersTo,
} from "../queue/new-message.ts";
import type { QueueSettings } from "../queue/options.ts";
import type { Payloads } from "../queue/payloads.ts";
import { partsOf, QueueHandle } from "./queue-handle.ts";
import {
  decoded,
  MOST_KEYS,
  type CancelWhereOptions,
  type CancelWhereResult,
  type DelayedMessage,
  type Rescheduled,
} from "./delayed-message.ts";
import type { OpenQueue } from "../partitions/open-queue.ts";
import type { PlainReach } from "../partitions/reach.ts";
import type { Exchanged } from "../delayed/exchanges.ts";
import type { Landing, NextStep } from "../queue/landing.ts";
import type { Due, OfferResult, Offering } from "../queue/offering.ts";
import type { AckOptions } from "../reliable/consuming/delivery.ts";
import { Schedules } from "./schedules.ts";
import { traceOffer, traceOffers } from "./traced-offers.ts";
import { checkNewMessage, checkNext, offerRule, spreadOver } from "./offer-options.ts";
import { Delay } from "../time/delay.ts";
import { queueTime } from "../time/runtime.ts";

/**
 * Checks and encodes messages that are offered in the same step as another change to the queue of `handle`, and runs `act` with
 * them. `isMany`: whether the caller gave a list. `id`: the message that they follow, if it is known. Not for users: for handles.
 */
export let stepOf: <T, Headers extends MessageHeaders, Result>(
  handle: DelayedHandle<T, Headers>,
  options: Pick<AckOptions<never, never>, "offer" | "to">,
  act: (step: NextStep) => Promise<Result>,
  how: { readonly isMany?: boolean; readonly id?: MessageId; readonly call?: Call | undefined },
) => Promise<Result>;

/** Options of `cancel` that offer a message in the same step. */
export interface CancelOptions<
  T,
  Headers extends MessageHeaders = MessageHeaders,
> extends FindOptions {
  /**
   * The message, as in `offerMany` but without `onDuplicate`: if a third message holds the key, that one keeps it. Costs some
   * twelve commands.
   */
  readonly offer: NewMessage<NoInfer<T>, NoInfer<Headers>>;
  /**
   * The queue that receives it: a handle of the same client. The queue must be on the same Redis server, and on a Cluster in the
   * same slot. Defaults to this queue.
   */
  readonly to?: OffersTo<T, Headers> | undefined;
}

/** The parts of its queue that a handle of either kind uses. */
type HandleReach = Pick<PlainReach, "offers" | "delayed" | "schedules" | "activity">;

/**
 * The operations on delayed messages that every handle has: offer, find, cancel and reschedule. Calls that take an id
 * or a key also find the retrying messages of a reliable queue.
 */
export abstract class DelayedHandle<T, Headers extends MessageHeaders> extends QueueHandle {
  /** The queue's schedules: messages that recur. */
  readonly schedules: Schedules<T>;
  readonly #reach: HandleReach;
  readonly #payloads: Payloads<T>;
  readonly #anyTime: boolean;
  readonly #maxPayloadBytes: number;
  /** How the check of a delay ends its error. */
  readonly #hints: DurationHints;

  static {
    const isHandle = (one: unknown): one is DelayedHandle<unknown, MessageHeaders> =>
      typeof one === "object" && one !== null && #reach in one;
    stepOf = async (handle, { offer, to }, act, { isMany = false, id, call }) => {
      const target: unknown = to ?? handle;
      if (!isHandle(target))
        throw new TypeError("to must be a handle of a queue that takes offers");
      checkIterable("offer", offer);
      const { offers: own } = handle.#reach;
      const into = target.#reach.offers;
      own.checkOpen();
      into.checkOpen();
      const { takesHeaders } = into;
      const queue = { takesHeaders, anyTime: target.#anyTime, calledAt: queueTime.now() };
      const landings = Array.from(offer, (message, i): Landing => {
        const rule = checkNext(isMany ? `offer[${i}]` : "offer", message, queue);
        return { payload: target.#payloads.encode(message.payload), ...rule, sentAs: {} };
      });
      const isOwn = partsOf(target) === partsOf(handle);
      const here = isOwn ? await own.beside(landings, id, call) : landings;
      const run = (all: readonly Offering[]) =>
        act({ landings: all as readonly Landing[], to: isOwn ? undefined : into });
      if (!offers.hasSubscribers) return await run(here);
      return await traceOffers({ queue: target.name, takesHeaders }, here, run);
    };
  }

  /** @internal */
  protected constructor(
    open: OpenQueue,
    reach: HandleReach,
    payloads: Payloads<T>,
    { anyTime, maxPayloadBytes }: Pick<QueueSettings<T>, "anyTime" | "maxPayloadBytes">,
  ) {
    super(open);
    this.schedules = new Schedules(reach, payloads);
    this.#reach = reach;
    this.#payloads = payloads;
    this.#anyTime = anyTime;
    this.#maxPayloadBytes = maxPayloadBytes;
    this.#hints = { ...OFFER, anyTime };
  }

  /**
   * Puts a message into the queue, to become ready `delay` milliseconds from now on the Redis server's clock. The delay counts from
   * this call, even if the call has to wait for its connection.
   *
   * Once the promise resolves, the message is in Redis and survives this process. An offer that is sent again after a
   * reconnect is stored once, unless its first copy became ready before the second arrived. A delay of 0 is due at
   * once.
   *
   * With a `key`, the message can be cancelled, rescheduled and found by that key. `outcome` says what happened if
   * another message held the key.
   *
   * @throws {RangeError | TypeError} if `delay` is not a number, is negative or above 30 years (see `anyTime`), or an option is not
   * legal.
   * @throws {EncodeError | PayloadTooLargeError} if the payload cannot be encoded, or is too large; nothing was sent.
   * @throws {OfferError} if Redis did not accept the message; `effect` says whether it may be stored.
   */
  async offer(payload: T, delay: number, options?: OfferOptions<Headers>): Promise<OfferResult> {
    checkDuration("delay", delay, this.#hints);
    return await this.#offer(payload, { delay: new Delay(delay) }, options);
  }

  /**
   * Puts a message into the queue, to become ready at an instant: a date, epoch milliseconds (fractions are rounded up), or a local
   * time in a time zone. The Redis server's clock decides. An instant in the past is due at once. Otherwise like {@link offer}.
   *
   * @throws {RangeError | TypeError} unless `at` is a valid date since 1970, epoch milliseconds of the years 1973 to
   * 9999 (see `anyTime`), or a local time in a time zone that the runtime knows.
   */
  async offerAt(
    payload: T,
    at: InstantLike,
    options?: OfferOptions<Headers>,
  ): Promise<OfferResult> {
    const deadline = checkInstant("at", at, { delay: "use offer", anyTime: this.#anyTime });
    return await this.#offer(payload, { deadline }, options);
  }

  /**
   * Offers many messages in this order, up to a hundred per script; returns the results in the same order. Each has
   * either a `delay` in milliseconds or an instant `at`, as in {@link offer} and {@link offerAt}.
   *
   * All messages are checked and encoded before the first one is sent.
   *
   * @throws {TypeError | RangeError} naming the message, the rule and the value; nothing was sent.
   * @throws {OfferManyError} if Redis did not accept all of them; `results` says which it did accept.
   */
  async offerMany(
    messages: Iterable<NewMessage<T, Headers>>,
    options?: CallOptions,
  ): Promise<OfferResult[]> {
    checkIterable("messages", messages);
    const call = checkCall(options);
    const to = this.#reach.offers;
    to.checkOpen();
    const { takesHeaders } = to;
    // One instant for all: else rounding could change their order.
    const queue = { ...this.#ruleOf(takesHeaders), calledAt: queueTime.now() };
    const offerings = Array.from(messages, (message, i): Offering => {
      const due = checkNewMessage(`messages[${i}]`, message, queue);
      const { payload, delay: _, at: __, ...rule } = message;
      const checked = offerRule(rule, queue);
      return { payload: this.#payloads.encode(payload), due: spreadOver(due, rule), ...checked };
    });
    const offer = (all: readonly Offering[]) => to.offerMany(all, call);
    if (!offers.hasSubscribers) return await offer(offerings);
    return await traceOffers({ queue: this.name, takesHeaders }, offerings, offer);
  }

  /**
   * Cancels a delayed or retrying message by its id or key, in O(log N).
   *
   * Returns true if the message was delayed or retrying; it will never be delivered. Returns false if it had already
   * moved, or never existed. If several consumer groups retry the message, it is cancelled for all of them; a group that
   * has it ready or in flight at that moment keeps it. The answer is exact: if Redis's reply is lost with the connection, the promise rejects.
   */
  async cancel(idOrKey: MessageId | string, options?: FindOptions): Promise<boolean>;
  /**
   * Cancels a message and offers another one in the same step: both, or neither. `cancelled` says which. If a third message holds
   * the new one's key, neither is done, and the outcome of `offered` is `"existing"`. The new message may take the key of the
   * cancelled one.
   *
   * In a partitioned queue the new message must be in the partition of the old one. Without a key, it inherits that partition.
   *
   * If Redis's reply is lost with the connection, the promise rejects, and `effect` of the error is `"unknown"`.
   *
   * @throws {TypeError | RangeError} naming the property, the rule and the value; or if one script cannot write to both queues.
   * Nothing was done.
   * @throws {EncodeError | PayloadTooLargeError} if the payload cannot be encoded, or is too large; nothing was done.
   */
  async cancel<U = T, H extends MessageHeaders = Headers>(
    idOrKey: MessageId | string,
    options: CancelOptions<U, H>,
  ): Promise<Exchanged>;
  async cancel(
    idOrKey: MessageId | string,
    options: FindOptions | CancelOptions<never, never> = {},
  ): Promise<boolean | Exchanged> {
    checkIdOrKey(idOrKey);
    if (!hasOffer<CancelOptions<never, never>>(options)) {
      return await this.#reach.delayed.cancel(idOrKey, checkFind(options));
    }
    const { offer, to, ...find } = options;
    const call = checkFind(find);
    const exchange = (step: NextStep) => this.#reach.delayed.exchange(idOrKey, step, call);
    return await stepOf(this, { offer: [offer], to }, exchange, { call });
  }

  /**
   * Cancels many messages, up to a hundred per script; returns for each, in the same order, what {@link cancel} does.
   */
  async cancelMany(
    idsOrKeys: Iterable<MessageId | string>,
    options?: FindOptions,
  ): Promise<boolean[]> {
    const call = checkFind(options);
    checkIterable("idsOrKeys", idsOrKeys);
    const all = Array.from(idsOrKeys);
    for (const idOrKey of all) checkIdOrKey(idOrKey);
    this.#reach.offers.checkOpen();
    return await Promise.all(all.map((idOrKey) => this.#reach.delayed.cancel(idOrKey, call)));
  }

  /**
   * Cancels all messages whose key begins with `prefix`, such as `app1:trans:notice:`. Works in bounded steps, so it
   * may miss a key that is offered while it runs.
   *
   * Reads every key of the queue, which costs Redis about 1 us per key, in steps of some 100 us.
   *
   * @throws {TypeError} if `prefix` is not a non-empty string ({@link clear} drops all messages), or an option is not
   * known.
   */
  async cancelWhere(
    where: { readonly prefix: string },
    options: CancelWhereOptions = {},
  ): Promise<CancelWhereResult> {
    const prefix = checkWhere(where);
    checkOptions("cancelWhere option", options, ["dryRun", "onKeys", "signal"]);
    const { dryRun = false, onKeys } = options;
    if (onKeys !== undefined) checkFunction("onKeys", onKeys);
    checkSignal(options.signal);
    if (typeof dryRun !== "boolean") {
      throw new TypeError(`dryRun must be a boolean, got ${typeof dryRun}`);
    }
    const call = callOf(options);
    const keys: string[] = [];
    let count = 0;
    const cancelled = async (found: readonly string[]) => {
      const flags = await Promise.all(found.map((key) => this.#reach.delayed.cancel(key, call)));
      return found.filter((_, i) => flags[i]);
    };
    for await (const found of this.#reach.delayed.keysWith(prefix, call)) {
      const page = dryRun ? await this.#reach.delayed.heldOf(found, call) : await cancelled(found);
      count += page.length;
      keys.push(...page.slice(0, MOST_KEYS - keys.length));
      if (page.length > 0) await onKeys?.(page);
    }
    if (!dryRun) await this.#reach.activity.note({ what: "cancelled", count, detail: prefix });
    return { count, keys };
  }

  /**
   * Gives a delayed message, found by its id or key, a new deadline `delay` milliseconds from now, in O(log N). Returns
   * its new id and deadline, or undefined if it had already moved or never existed. A retrying message keeps its id.
   *
   * The message goes to the end of the insertion order, unless its deadline stays the same to the millisecond.
   */
  async reschedule(
    idOrKey: MessageId | string,
    delay: number,
    options?: FindOptions,
  ): Promise<Rescheduled | undefined> {
    checkIdOrKey(idOrKey);
    checkDuration("delay", delay, { ...RESCHEDULE, anyTime: this.#anyTime });
    return await this.#reschedule(idOrKey, { delay: new Delay(delay) }, options);
  }

  /**
   * Gives a delayed message a new deadline: an instant, as in {@link offerAt}. An instant in the past makes it due at
   * once. Otherwise like {@link reschedule}.
   *
   * @throws {RangeError | TypeError} unless `at` is a valid date since 1970, epoch milliseconds of the years 1973 to
   * 9999 (see `anyTime`), or a local time in a time zone that the runtime knows.
   */
  async rescheduleAt(
    idOrKey: MessageId | string,
    at: InstantLike,
    options?: FindOptions,
  ): Promise<Rescheduled | undefined> {
    checkIdOrKey(idOrKey);
    const deadline = checkInstant("at", at, { delay: "use reschedule", anyTime: this.#anyTime });
    return await this.#reschedule(idOrKey, { deadline }, options);
  }

  /**
   * Makes a delayed message due now, behind the messages that are already due. A message that is already due keeps its
   * place. Otherwise like {@link reschedule}.
   */
  async promote(
    idOrKey: MessageId | string,
    options?: FindOptions,
  ): Promise<Rescheduled | undefined> {
    checkIdOrKey(idOrKey);
    return await this.#reschedule(idOrKey, "now", options);
  }

  /** Returns the delayed or retrying message with this id or key; undefined if there is none. O(log N). */
  async get(
    idOrKey: MessageId | string,
    options?: FindOptions,
  ): Promise<DelayedMessage<T> | undefined> {
    checkIdOrKey(idOrKey);
    const message = await this.#reach.delayed.get(idOrKey, checkFind(options));
    return message && this.#payloads.decodeMessage(message);
  }

  /** Whether a delayed or retrying message holds this key. O(log N). */
  async has(key: string, options?: FindOptions): Promise<boolean> {
    checkKey(key);
    return (await this.#reach.delayed.heldOf([key], checkFind(options))).length === 1;
  }

  /**
   * Iterates over the delayed and retrying messages whose key begins with `prefix`, each once, in no particular order:
   * `for await (const message of queue.find({ prefix: "order:" }))`.
   *
   * Not a snapshot: a message that is offered, moved or rescheduled during the iteration may be missing. Messages that
   * the codec cannot read are left out, and reported by an `error` event. Reads every key of the queue, which costs
   * Redis about 1 us per key, in steps of some 100 us. The keys found so far stay in memory.
   *
   * @throws {TypeError} if `prefix` is not a non-empty string.
   */
  find(
    where: { readonly prefix: string },
    options?: CallOptions,
  ): AsyncGenerator<DelayedMessage<T>, void, void> {
    const prefix = checkWhere(where);
    const call = checkCall(options);
    return decoded(() => this.#reach.delayed.withPrefix(prefix, call), this.#payloads);
  }

  /**
   * Iterates over up to `limit` delayed messages in the order of their deadlines; equal deadlines in the order of the
   * offers. Defaults to all messages.
   *
   * Reads in pages, each O(log N). Not a snapshot: a message that is moved or rescheduled during the iteration may be
   * missing. None appears twice: the iterator keeps the ids of earlier messages in memory. Messages that the codec
   * cannot read are left out, and reported by an `error` event.
   *
   * @throws {RangeError | TypeError} if `limit` is not a whole number, or negative.
   */
  soonest(
    limit = Number.MAX_SAFE_INTEGER,
    options?: CallOptions,
  ): AsyncGenerator<DelayedMessage<T>, void, void> {
    checkWhole("limit", limit, 0, Number.MAX_SAFE_INTEGER);
    const call = checkCall(options);
    const read = () => this.#reach.delayed.inDeadlineOrder(limit, call);
    return decoded(read, this.#payloads, limit);
  }

  /** Returns the number of delayed messages. O(1). */
  async size(options?: CallOptions): Promise<number> {
    return await this.#reach.delayed.size(checkCall(options));
  }

  /** Whether no message is delayed. O(1). */
  async isEmpty(options?: CallOptions): Promise<boolean> {
    return (await this.size(options)) === 0;
  }

  /**
   * Returns the earliest deadline in epoch milliseconds, or undefined if no message is delayed. O(log N).
   *
   * Returns Infinity for a deadline beyond the legal range, which only foreign writers can produce and which never
   * comes.
   */
  async nextDeadline(options?: CallOptions): Promise<number | undefined> {
    return await this.#reach.delayed.nextDeadline(checkCall(options));
  }

  /**
   * Drops all delayed messages; returns how many. Ready messages stay. Placed ticks of schedules are dropped, too; each
   * schedule continues with the ticks after them.
   */
  async clear(options?: CallOptions): Promise<number> {
    const count = await this.#reach.delayed.clear(checkCall(options));
    await this.#reach.activity.note({ what: "cleared", count });
    return count;
  }

  async #reschedule(
    idOrKey: string,
    due: Due | "now",
    options?: FindOptions,
  ): Promise<Rescheduled | undefined> {
    const message = await this.#reach.delayed.reschedule(idOrKey, due, checkFind(options));
    return message && { id: message.id, deadline: message.deadline };
  }

  #ruleOf(takesHeaders: boolean) {
    return { takesHeaders, anyTime: this.#anyTime, maxPayloadBytes: this.#maxPayloadBytes };
  }

  #offer(payload: T, due: Due, options?: OfferOptions<Headers>): Promise<OfferResult> {
    const to = this.#reach.offers;
    to.checkOpen();
    const { takesHeaders } = to;
    const rule = options === undefined ? undefined : offerRule(options, this.#ruleOf(takesHeaders));
    const when = options === undefined ? due : spreadOver(due, options);
    const offering = { payload: this.#payloads.encode(payload), due: when, ...rule };
    if (offers.hasSubscribers) {
      return traceOffer(this.name, to, offering, callOf(options));
    }
    return to.offer(offering, callOf(options));
  }
}

const OFFER = { call: "offer(payload, delay, options)", instant: "use offerAt" };

const RESCHEDULE = { call: "reschedule(idOrKey, delay, options)", instant: "use rescheduleAt" };
