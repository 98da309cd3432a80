import { offer } from "../../lua/delayed/offer.ts";
import { offerKeyed } from "../../lua/delayed/offer-keyed.ts";
import type { Family } from "../../lua/family.ts";
import type { Row, Script } from "../../lua/script.ts";
import type { QueueKeys } from "../../queue/keys.ts";
import { formatMessageId } from "../../queue/message/message.ts";
import type { Queue } from "../../queue/queue.ts";
import type { RedisClient } from "../../redis/client.ts";
import { memberOf, type Due, type Offering, type OfferResult } from "./offering.ts";

/** The script for a batch of offers: `keyed` also takes offers without keys. */
export type OfferScript = "plain" | "keyed";

/**
 * Sends batches of offers: packs the members, runs the script, and reads the results.
 *
 * Rejects with the error that ioredis rejects with.
 */
export class OfferSender {
  readonly #queue: Queue;
  readonly #onUnknown: () => void;

  /** `onUnknown` is called when Redis does not know the script, before its text is sent. */
  constructor(queue: Queue, onUnknown: () => void) {
    this.#queue = queue;
    this.#onUnknown = onUnknown;
  }

  /** Sends offers under these ids, one for each; returns the results in the same order. */
  send(
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
    const rows = offerings.map((offering, i) => ({
      member: memberOf(offering, ids[i] as Buffer),
      ...columnsOf(offering.due),
    }));
    const sentAt = performance.now();
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
      const { due, key = "", rule = "", maxWait = "" } = offering;
      const member = memberOf(offering, ids[i] as Buffer);
      return { member, ...columnsOf(due), key, rule, maxWait };
    });
    const sentAt = performance.now();
    const reply = await this.#run(redis, offerKeyed, offerings, rows);
    this.#queue.clock.observe(reply.serverTime, sentAt);
    return reply.results.map(({ deadline, outcome, delayedId }, i) => ({
      id: formatMessageId(deadline, delayedId ?? (ids[i] as Buffer)),
      deadline,
      outcome,
    }));
  }

  #run<Reply, Column extends string>(
    redis: RedisClient,
    scripts: Family<Script<keyof QueueKeys, "channel", Reply, Column>>,
    [first]: readonly Offering[],
    rows: readonly Row<Column>[],
  ): Promise<Reply> {
    const { channel } = this.#queue.keys;
    const knownFact = first?.knownFact;
    return this.#queue.run(redis, scripts, { channel }, rows, knownFact, this.#onUnknown);
  }
}

/** A {@link Due} as the scripts take it: one of the two columns is empty. */
function columnsOf(due: Due): { readonly delay: number | ""; readonly deadline: number | "" } {
  return "delay" in due
    ? { delay: due.delay, deadline: "" }
    : { delay: "", deadline: due.deadline };
}
