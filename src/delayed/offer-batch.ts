import type { Connections } from "../redis/connections.ts";
import { OfferError } from "../errors.ts";
import { isCommandTimeout, isLostInCluster, isRefusedForNow, replyOf } from "../failure.ts";
import type { Queue } from "../queue/queue.ts";
import { offer } from "../lua/delayed/offer.ts";
import { offerKeyed, type Outcome } from "../lua/delayed/offer-keyed.ts";
import { pick } from "../lua/family.ts";
import { run } from "../lua/script.ts";
import type { RedisClient } from "../redis/client.ts";
import { createId, formatMessageId, packMember, type MessageId } from "../queue/message.ts";
import { retrying } from "../redis/retry.ts";
import { ServerClock } from "../time/server-clock.ts";
import { TurnBatch } from "../queue/turn-batch.ts";

/** What became of an offer. */
export interface OfferResult {
  /** Names the message from now on. */
  readonly id: MessageId;
  /** When it is due, in epoch milliseconds on the Redis server's clock. */
  readonly deadline: number;
  /**
   * What happened, which for an offer without a key is always `"added"`. With a key that has a delayed message:
   * `"rejected"`: that message stays, and `id` and `deadline` are its own; `"replaced"`: it
   * has gone, and this one is in its place; `"kept"`: likewise, but its deadline was kept.
   */
  readonly outcome: Outcome;
}

/** When a message is to be due: in `delay` milliseconds, or at `deadline` (epoch ms). */
export type Due = { readonly delay: number } | { readonly deadline: number };

/** An encoded message on its way to Redis. */
export interface Offering {
  readonly payload: Buffer;
  readonly due: Due;
  readonly key?: string | undefined;
  /** What to do if the key has a delayed message. */
  readonly rule?: "reject" | "replace" | "keep" | undefined;
  /** With `rule: "replace"`: how long its key may wait altogether, in milliseconds. */
  readonly maxWait?: number | undefined;
}

/**
 * Offers on their way to Redis. Those of one turn of the event loop travel together, and all arrive in
 * the order in which they were made.
 *
 * Redis may have forgotten a script (a restart, a failover, SCRIPT FLUSH). An offer that hears so is
 * sent a second time, and would arrive behind those that were sent after it through a script that
 * Redis knows. So all offers that are under way at once use one script, which Redis knows for all of
 * them or for none:
 *
 * - Offers without keys use `offer` as long as they are among themselves.
 * - A turn with any key in it goes through `offer-keyed`, which takes messages without keys too. It
 *   waits until the offers that use `offer` are answered.
 * - Whatever follows uses `offer-keyed`, until nothing is under way.
 */
export class OfferBatch {
  readonly #queue: Queue;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #batch = new TurnBatch<Offering, OfferResult>({
    send: (offerings) => this.#send(offerings, this.#chooseScript()),
    sizeOf: ({ payload }) => payload.length,
  });
  /** While set: offers wait for it, so that they do not overtake others. */
  #gate: Promise<void> | undefined;
  /** Whether an offer with a key has been made in this turn. */
  #hasKey = false;
  /** What the offers that are under way use. */
  #script: "plain" | "keyed" = "plain";
  /** Those of all queues of the client, which share a connection. */
  readonly #all: Set<OfferBatch>;

  constructor(
    queue: Queue,
    shared: {
      readonly connections: Connections;
      readonly clock: ServerClock;
      readonly offerBatches: Set<OfferBatch>;
    },
  ) {
    this.#queue = queue;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#all = shared.offerBatches.add(this);
  }

  /** Adds an offer; resolves when Redis has it. */
  add(offering: Offering): Promise<OfferResult> {
    if (offering.key !== undefined) this.#hasKey = true;
    return this.#batch.add(offering);
  }

  /** Resolves when every offer made so far is settled. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  /** Decides for what is sent now; see above. The other batches of the same turn follow suit. */
  #chooseScript(): "plain" | "keyed" {
    const { isUnderWay } = this.#batch;
    const before = isUnderWay ? this.#script : undefined;
    this.#script = this.#hasKey || before === "keyed" ? "keyed" : "plain";
    this.#hasKey = false;
    if (before === "plain" && this.#script === "keyed") this.#waitForOthers();
    return this.#script;
  }

  /** Offers that come from now on wait until those that are under way by now are answered. */
  #waitForOthers(): void {
    const gate = this.#batch.sent().finally(() => {
      if (this.#gate === gate) this.#gate = undefined;
    });
    this.#gate = gate;
  }

  async #send(offerings: readonly Offering[], script: "plain" | "keyed"): Promise<OfferResult[]> {
    const { commands } = this.#connections;
    const wasSent = this.#connections.watchSending();
    // Whether an attempt was made whose answer did not come.
    let isUnknown = false;
    const mayRetry = (error: unknown): boolean => {
      isUnknown ||= replyOf(error) === undefined;
      // Sent twice, an offer is stored once.
      const isRetried = isRefusedForNow(error) || isLostInCluster(error);
      // Whatever comes now has to wait behind it.
      if (isRetried) this.#hold();
      return isRetried;
    };
    try {
      if (this.#gate !== undefined) await this.#gate;
      const asking = this.#clock.ready(() => commands.time());
      if (asking !== undefined) await asking;
      // The ids are made before the first sending: ioredis sends a script again whose answer was
      // lost with the connection, and ZADD NX then finds the same members.
      const ids = offerings.map(({ key }) => createId(this.#clock.nextStamp(), key));
      const send = () =>
        script === "plain"
          ? this.#sendPlain(commands, offerings, ids)
          : this.#sendKeyed(commands, offerings, ids);
      return await retrying(send, mayRetry);
    } catch (error) {
      const mayBeStored = isUnknown && (isCommandTimeout(error) || wasSent());
      const reason = this.#connections.explain(error);
      throw new OfferError(`cannot offer to queue "${this.#queue.name}"`, reason, mayBeStored);
    }
  }

  /**
   * Redis does not know the script, and gets its text next. So do all offers that are under way by now,
   * in turn; what comes next has to wait for them. In every queue of the client: once the text has
   * arrived for one, Redis knows the script for the next offer of another, too.
   */
  readonly #holdAll = (): void => {
    for (const batch of this.#all) batch.#hold();
  };

  #hold(): void {
    // Those that wait at a gate already have not been sent.
    if (this.#gate === undefined && this.#batch.isUnderWay) this.#waitForOthers();
  }

  async #sendPlain(
    commands: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const rows = offerings.map(({ payload, due }, i) => ({
      member: packMember(ids[i] as Buffer, payload),
      ...columnsOf(due),
    }));
    const { keys, layout } = this.#queue;
    const { channel } = keys;
    const script = pick(offer, layout);
    const sentAt = ServerClock.local();
    const reply = await run(commands, script, keys, { channel }, rows, this.#holdAll);
    this.#clock.observe(reply.serverTime, sentAt);
    return reply.deadlines.map((deadline, i) => ({
      id: formatMessageId(deadline, ids[i] as Buffer),
      deadline,
      outcome: "added",
    }));
  }

  async #sendKeyed(
    commands: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const rows = offerings.map(({ payload, due, key = "", rule = "", maxWait = "" }, i) => ({
      member: packMember(ids[i] as Buffer, payload, key),
      ...columnsOf(due),
      key,
      rule,
      maxWait,
    }));
    const { keys, layout } = this.#queue;
    const { channel } = keys;
    const script = pick(offerKeyed, layout);
    const sentAt = ServerClock.local();
    const reply = await run(commands, script, keys, { channel }, rows, this.#holdAll);
    this.#clock.observe(reply.serverTime, sentAt);
    return reply.answers.map(({ deadline, outcome, delayedId }, i) => ({
      id: formatMessageId(deadline, delayedId ?? (ids[i] as Buffer)),
      deadline,
      outcome,
    }));
  }
}

/** A {@link Due} as the scripts take it: one of the two columns is empty. */
function columnsOf(due: Due): { readonly delay: number | ""; readonly deadline: number | "" } {
  return "delay" in due
    ? { delay: due.delay, deadline: "" }
    : { delay: "", deadline: due.deadline };
}
