import type { Connections } from "../redis/connections.ts";
import { OfferError, type Effect } from "../errors.ts";
import { isLostInCluster, replyOf } from "../failure.ts";
import { headersBytes, type MessageHeaders } from "../queue/message/headers.ts";
import type { Queue } from "../queue/queue.ts";
import { offer } from "../lua/delayed/offer.ts";
import { offerKeyed, type Outcome } from "../lua/delayed/offer-keyed.ts";
import { pick } from "../lua/family.ts";
import type { Row, Script } from "../lua/script.ts";
import type { QueueKeys } from "../queue/keys.ts";
import type { RedisClient } from "../redis/client.ts";
import { createId, formatMessageId, packMember, type MessageId } from "../queue/message/message.ts";
import { retrying } from "../redis/call.ts";
import type { Expiries } from "../time/expiries.ts";
import type { ServerClock } from "../time/server-clock.ts";
import { TurnBatch, type Batch } from "../queue/turn-batch.ts";

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
  readonly headers?: MessageHeaders | undefined;
  /** The bucket that its id tells; any, if it is left out. */
  readonly bucket?: number | undefined;
  /** To a partition: what the caller knew when it chose this one; see {@link Queue.run}. */
  readonly knownFact?: string;
  /** To a partition: keeps the id for another attempt, once it may have been stored. */
  readonly sentAs?: { id?: Buffer };
}

/**
 * Offers on their way to Redis. Those of one turn of the event loop travel together, and all arrive in
 * the order in which they were made.
 *
 * Redis may have forgotten a script (a restart, a failover, SCRIPT FLUSH). An offer that is refused for
 * that reason is sent a second time. It would then arrive behind offers that were sent after it through
 * a script that Redis knows. So all offers that are under way at once use one script, which Redis knows
 * for all of them or for none:
 *
 * - Offers without keys use `offer` as long as they are among themselves.
 * - A turn with any key in it goes through `offer-keyed`, which takes messages without keys too. It
 *   waits for the replies to the offers that use `offer`.
 * - Whatever follows uses `offer-keyed`, until nothing is under way.
 */
export class OfferBatch {
  readonly #queue: Queue;
  readonly #connections: Connections;
  readonly #clock: ServerClock;
  readonly #batch: TurnBatch<Offering, OfferResult>;
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
      readonly expiries: Expiries;
      readonly offerBatches: Set<OfferBatch>;
    },
  ) {
    this.#queue = queue;
    this.#connections = shared.connections;
    this.#clock = shared.clock;
    this.#all = shared.offerBatches.add(this);
    this.#batch = new TurnBatch({
      send: (batch) => this.#send(batch, this.#chooseScript()),
      kindOf: ({ knownFact }) => knownFact ?? "",
      sizeOf: ({ payload, headers }) => payload.length + (headers ? headersBytes(headers) : 0),
      expiries: shared.expiries,
      giveUp: (why) => this.#failure(why),
    });
  }

  /** Adds an offer; resolves when Redis has it. */
  add(offering: Offering, signal?: AbortSignal): Promise<OfferResult> {
    if (offering.key !== undefined) this.#hasKey = true;
    return this.#batch.add(offering, signal);
  }

  /** Resolves when every offer made so far is settled. */
  settled(): Promise<void> {
    return this.#batch.settled();
  }

  /** No offer is added any more, while the client goes on without this queue. */
  leave(): void {
    this.#all.delete(this);
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

  /** Offers that come from now on wait for the replies to those that are under way by now. */
  #waitForOthers(): void {
    const gate = this.#batch.sent().finally(() => {
      if (this.#gate === gate) this.#gate = undefined;
    });
    this.#gate = gate;
  }

  async #send(batch: Batch<Offering>, script: "plain" | "keyed"): Promise<OfferResult[]> {
    // Whether an attempt was made whose reply did not come.
    let isUnknown = false;
    const mayRetry = (error: unknown): boolean => {
      isUnknown ||= replyOf(error) === undefined;
      // Sent twice, an offer is stored once.
      const isRetried = this.#connections.mayRetry(error) || isLostInCluster(error);
      // Whatever comes now has to wait behind it.
      if (isRetried) this.#hold();
      return isRetried;
    };
    try {
      if (this.#gate !== undefined) await this.#gate;
      const { commands, readiness } = this.#connections;
      const connecting = readiness.wait();
      if (connecting !== undefined) await connecting;
      const asking = this.#clock.ready(() => this.#queue.time(commands));
      if (asking !== undefined) await asking;
      const offerings = batch.claim();
      if (offerings.length === 0) return [];
      // The ids are made before the first sending: ioredis sends a script again whose reply was
      // lost with the connection, and ZADD NX then finds the same members.
      const ids = offerings.map((offering) => this.#idOf(offering));
      const send = () =>
        script === "plain"
          ? this.#sendPlain(commands, offerings, ids)
          : this.#sendKeyed(commands, offerings, ids);
      const results = await retrying(send, mayRetry, batch.endsAt, async () => {
        await readiness.wait();
        return performance.now() < batch.endsAt;
      });
      this.#queue.counters.offered += results.length;
      if (script === "keyed") this.#queue.counters.offered -= results.filter(isRejected).length;
      return results;
    } catch (error) {
      throw this.#failure(error, isUnknown ? "unknown" : "none");
    }
  }

  #idOf({ bucket, sentAs }: Offering): Buffer {
    if (sentAs === undefined) return createId(this.#clock.nextStamp(), bucket);
    return (sentAs.id ??= createId(this.#clock.nextStamp(), bucket));
  }

  #failure(error: unknown, effect?: Effect): OfferError {
    const reason = this.#connections.explain(error);
    return new OfferError(`cannot offer to queue "${this.#queue.name}"`, reason, effect);
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
    const rows = offerings.map(({ payload, due, headers }, i) => ({
      member: packMember(ids[i] as Buffer, payload, "", headers && { headers }),
      ...columnsOf(due),
    }));
    const script = pick(offer, this.#queue.layout);
    const sentAt = performance.now();
    const reply = await this.#run(commands, script, offerings, rows);
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
    const rows = offerings.map(
      ({ payload, due, key = "", rule = "", maxWait = "", headers }, i) => ({
        member: packMember(ids[i] as Buffer, payload, key, headers && { headers }),
        ...columnsOf(due),
        key,
        rule,
        maxWait,
      }),
    );
    const script = pick(offerKeyed, this.#queue.layout);
    const sentAt = performance.now();
    const reply = await this.#run(commands, script, offerings, rows);
    this.#clock.observe(reply.serverTime, sentAt);
    return reply.results.map(({ deadline, outcome, delayedId }, i) => ({
      id: formatMessageId(deadline, delayedId ?? (ids[i] as Buffer)),
      deadline,
      outcome,
    }));
  }

  #run<Reply, Column extends string>(
    commands: RedisClient,
    script: Script<keyof QueueKeys, "channel", Reply, Column>,
    [first]: readonly Offering[],
    rows: readonly Row<Column>[],
  ): Promise<Reply> {
    const { channel } = this.#queue.keys;
    const knownFact = first?.knownFact;
    return this.#queue.run(commands, script, { channel }, rows, knownFact, this.#holdAll);
  }
}

function isRejected({ outcome }: OfferResult): boolean {
  return outcome === "rejected";
}

/** A {@link Due} as the scripts take it: one of the two columns is empty. */
function columnsOf(due: Due): { readonly delay: number | ""; readonly deadline: number | "" } {
  return "delay" in due
    ? { delay: due.delay, deadline: "" }
    : { delay: "", deadline: due.deadline };
}
