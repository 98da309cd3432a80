import { OfferError, type RedisError } from "../../errors.ts";
import { isLostInCluster } from "../../failure.ts";
import { offer } from "../../lua/delayed/offer.ts";
import { offerKeyed } from "../../lua/delayed/offer-keyed.ts";
import type { Row, Script } from "../../lua/script.ts";
import type { Call } from "../../queue/call.ts";
import type { QueueKeys } from "../../queue/keys.ts";
import { headersBytes } from "../../queue/message/headers.ts";
import { createId, formatMessageId } from "../../queue/message/message.ts";
import type { Queue } from "../../queue/queue.ts";
import { TurnBatch, type RequestBatch } from "../../queue/turn-batch.ts";
import type { Wait } from "../../redis/call.ts";
import type { RedisClient } from "../../redis/client.ts";
import type { Connections } from "../../redis/connections.ts";
import {
  deadlineOf,
  delayOf,
  memberOf,
  resultOf,
  type Offering,
  type OfferResult,
} from "../../queue/offering.ts";
import { networkTime, queueTime } from "../../time/runtime.ts";

/** The script for a batch of offers: `keyed` also takes offers without keys. */
type OfferScript = "plain" | "keyed";

/**
 * Offers on their way to Redis. Those of one turn of the event loop share a script, and all arrive in the order in
 * which they were made.
 *
 * Redis may have forgotten a script (after a restart, a failover, SCRIPT FLUSH). Redis then refuses the offer. It is
 * sent a second time, and would arrive behind later offers that used a script which Redis still knew. So all offers
 * under way at the same time use one script, which Redis knows for all of them or for none:
 *
 * - While no offer under way has a key, offers use `offer`.
 * - A turn with any key in it uses `offer-keyed`, which also takes messages without keys. It first waits for the
 *   replies to the offers that use `offer`.
 * - All later turns use `offer-keyed`, until no offer is under way.
 */
export class OfferBatch {
  readonly #queue: Queue;
  readonly #connections: Connections;
  readonly #batch: TurnBatch<Offering, OfferResult>;
  /** While set, new offers wait for it, so that they do not overtake earlier ones. */
  #gate: Promise<void> | undefined;
  /** Whether this turn of the event loop has an offer with a key. */
  #hasKey = false;
  /** The script that the offers under way use. */
  #script: OfferScript = "plain";

  constructor(queue: Queue) {
    this.#queue = queue;
    this.#connections = queue.server.connections;
    this.#batch = new TurnBatch({
      send: (batch) => this.#send(batch, this.#chooseScript()),
      kindOf: ({ knownFact }) => knownFact ?? "",
      sizeOf: ({ payload, headers }) => payload.length + (headers ? headersBytes(headers) : 0),
      expiries: queue.server.expiries,
      isMoving: () => this.#connections.isMoving(queue.server.expiries.timeout),
      giveUp: (why) => this.#failure(why),
    });
    queue.server.offers.add(this);
  }

  /** Adds an offer; resolves once Redis has stored it. */
  add(offering: Offering, call?: Call): Promise<OfferResult> {
    this.#queue.isUsed = true;
    if (offering.key !== undefined) this.#hasKey = true;
    return this.#batch.add(offering, call);
  }

  /** Resolves once every offer made so far is done. */
  done(): Promise<void> {
    return this.#batch.done();
  }

  /** Called when the client stays open without this queue. No offer may be added afterwards. */
  leave(): void {
    this.#queue.server.offers.delete(this);
  }

  /**
   * Chooses the script for the batch that is about to be sent. Later batches of the same turn make the same choice,
   * since this one is under way by then.
   */
  #chooseScript(): OfferScript {
    const { isUnderWay } = this.#batch;
    const before = isUnderWay ? this.#script : undefined;
    this.#script = this.#hasKey || before === "keyed" ? "keyed" : "plain";
    this.#hasKey = false;
    if (before === "plain" && this.#script === "keyed") this.#setGate();
    return this.#script;
  }

  /** Makes later offers wait for the replies to all that are under way now. */
  #setGate(): void {
    const gate = this.#batch.sent().finally(() => {
      if (this.#gate === gate) this.#gate = undefined;
    });
    this.#gate = gate;
  }

  async #send(batch: RequestBatch<Offering>, script: OfferScript): Promise<OfferResult[]> {
    let offerings: readonly Offering[] = [];
    let ids: readonly Buffer[] = [];
    const wait: Wait = {
      endsAt: batch.endsAt,
      hasEnded: () => networkTime.now() >= batch.endsAt,
      begin: () => {
        offerings = batch.seal();
        // Create the ids before the first attempt: when ioredis resends a script whose reply was lost with the
        // connection, ZADD NX then finds the same members.
        ids = offerings.map((offering) => this.#idOf(offering));
        return offerings.length > 0;
      },
    };
    const send = (redis: RedisClient) => this.#sendUnder(redis, script, offerings, ids);
    const mayRetry = (error: unknown): boolean => {
      // Safe to retry: an offer that is sent twice is stored once.
      const isRetried = this.#connections.mayRetry(error) || isLostInCluster(error);
      // Later offers have to wait behind the retry.
      if (isRetried) this.closeGate();
      return isRetried;
    };
    try {
      if (this.#gate !== undefined) await this.#gate;
      const asking = this.#queue.clock.ready(() => this.#askTime());
      if (asking !== undefined) await asking;
      const results = (await this.#connections.send("commands", wait, send, mayRetry)) ?? [];
      this.#queue.counters.offered += results.length;
      if (script === "keyed") this.#queue.counters.offered -= results.filter(isExisting).length;
      return results;
    } catch (error) {
      throw this.#failure(error, offerings.length > 0 ? undefined : "none");
    }
  }

  async #askTime(): Promise<number> {
    const { commands, readiness } = this.#connections;
    await readiness.wait();
    return await this.#queue.time(commands);
  }

  #idOf({ hash, sentAs }: Offering): Buffer {
    if (sentAs === undefined) return createId(this.#queue.clock.nextStamp(), hash);
    return (sentAs.id ??= createId(this.#queue.clock.nextStamp(), hash));
  }

  #failure(error: unknown, effect?: RedisError["effect"]): OfferError {
    const reason = this.#connections.explain(error);
    return new OfferError(`cannot offer to queue "${this.#queue.name}"`, reason, effect);
  }

  /** Sends offers under these ids, one for each; returns the results in the same order. */
  #sendUnder(
    redis: RedisClient,
    script: OfferScript,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    return script === "plain"
      ? this.#sendPlain(redis, offerings, ids)
      : this.#sendKeyed(redis, offerings, ids);
  }

  async #sendPlain(
    redis: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const rows = offerings.map((offering, i) => {
      const { due } = offering;
      const member = memberOf(offering, ids[i] as Buffer);
      return { member, delay: delayOf(due), deadline: deadlineOf(due) };
    });
    const sentAt = queueTime.now();
    const reply = await this.#run(redis, offer, offerings, rows);
    this.#queue.clock.observe(reply.serverTime, sentAt);
    return reply.deadlines.map((deadline, i) => ({
      id: formatMessageId(deadline, ids[i] as Buffer),
      deadline,
      outcome: "added",
    }));
  }

  async #sendKeyed(
    redis: RedisClient,
    offerings: readonly Offering[],
    ids: readonly Buffer[],
  ): Promise<OfferResult[]> {
    const rows = offerings.map((offering, i) => {
      const { due, key = "", maxWait = "", once } = offering;
      const rule = once === undefined ? (offering.rule ?? "") : "once";
      const member = memberOf(offering, ids[i] as Buffer);
      return { member, delay: delayOf(due), deadline: deadlineOf(due), key, rule, maxWait };
    });
    const sentAt = queueTime.now();
    const reply = await this.#run(redis, offerKeyed, offerings, rows);
    this.#queue.clock.observe(reply.serverTime, sentAt);
    return reply.results.map((result, i) => resultOf(result, ids[i] as Buffer));
  }

  #run<Reply, Column extends string>(
    redis: RedisClient,
    script: Script<keyof QueueKeys, "channel" | "elementsAre", Reply, Column>,
    [first]: readonly Offering[],
    rows: readonly Row<Column>[],
  ): Promise<Reply> {
    const { channel } = this.#queue.keys;
    const knownFact = first?.knownFact;
    return this.#queue.run(redis, script, { channel }, rows, knownFact, () => this.#closeGates());
  }

  /**
   * Called when Redis does not know the script, before its text is sent. All offers under way will be refused and send
   * the text in turn, so later offers have to wait for them. This holds for every queue of the client: once the text
   * has arrived for one queue, Redis would run the next offer of another queue at once, ahead of that queue's refused
   * offers.
   */
  #closeGates(): void {
    for (const batch of this.#queue.server.offers) batch.closeGate();
  }

  /** Makes later offers wait for the replies to all that are under way now. */
  closeGate(): void {
    // Offers that wait at a gate have not been sent, so one gate suffices.
    if (this.#gate === undefined && this.#batch.isUnderWay) this.#setGate();
  }
}

function isExisting({ outcome }: OfferResult): boolean {
  return outcome === "existing";
}
