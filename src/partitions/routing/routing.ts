import { setMaxListeners } from "node:events";
import { ClosedError, RedisError } from "../../errors.ts";
import { REFUSAL } from "../../lua/guarded.ts";
import { bucketOf, isMessageId, parseMessageId } from "../../queue/message/message.ts";
import { BringOver } from "./bring-over.ts";
import { destinationOf, formatFact, isMoved, sourceOf, type Fact } from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";

/** Acts on one partition. `knownFact` is for its scripts. */
export type Act<Result> = (part: Part, knownFact: string, partition: number) => Promise<Result>;

/**
 * Finds the partition that a message belongs to, and acts there.
 *
 * While the number of partitions changes, a message that is looked for is brought over first. After that only its new
 * partition is asked: to ask both would miss a message that is on its way. Whoever acts on an old fact is refused, and
 * begins again with the new one.
 */
export class Routing {
  readonly bringOver: BringOver;
  readonly #parts: Parts;
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.bringOver = new BringOver(parts);
  }

  /**
   * Makes a call, in one step or several. One that was made is finished, however soon the client is closed.
   *
   * @throws {ClosedError} after {@link close}.
   */
  async during<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#isClosed) throw new ClosedError("the client");
    const calling = call();
    this.#underWay.add(calling);
    try {
      return await calling;
    } finally {
      this.#underWay.delete(calling);
    }
  }

  /** A step of a call: acts where the messages of a bucket belong; brings `idOrKey` there first. */
  at<Result>(
    bucket: number,
    idOrKey: string | undefined,
    act: Act<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    return this.#withFact(async (fact) => {
      if (idOrKey !== undefined && isMoved(fact, bucket)) {
        await this.bringOver.bring(fact, sourceOf(fact, bucket) as number, idOrKey);
      }
      const partition = destinationOf(fact, bucket);
      return await act(this.#parts.at(partition), formatFact(fact), partition);
    }, signal);
  }

  /**
   * A step of a call: acts on every partition, at once; brings `idOrKey` over first, wherever it is. Returns all results. If one of them
   * is a hit (`isHit`), that one alone: then it does not matter that others were refused.
   */
  everywhere<Result>(
    idOrKey: string | undefined,
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    signal?: AbortSignal,
  ): Promise<Result[]> {
    // Each of them listens.
    if (signal !== undefined) setMaxListeners(0, signal);
    return this.#withFact(async (fact) => {
      const { active } = this.#parts;
      if (idOrKey !== undefined && fact.state !== "stable") {
        await Promise.all(active.map((source) => this.bringOver.bring(fact, source, idOrKey)));
      }
      const acts = active.map((partition) =>
        act(this.#parts.at(partition), formatFact(fact), partition),
      );
      const settled = await Promise.allSettled(acts);
      const results = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const hit = results.find(isHit);
      if (hit !== undefined) return [hit];
      const failed = settled.find((one) => one.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      return results;
    }, signal);
  }

  /** Refuses every call from now on; resolves when those that were made are settled. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
  }

  async #withFact<Result>(
    act: (fact: Fact) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    let fact = this.#parts.fact ?? (await this.#parts.known(signal));
    for (;;) {
      try {
        return await act(fact);
      } catch (error) {
        const newer = this.#parts.fact;
        if (!isRefusedAsOld(error) || newer === undefined || newer.epoch === fact.epoch)
          throw error;
        fact = newer;
        signal?.throwIfAborted();
      }
    }
  }
}

/** Whether Redis has refused a script since it knows more about the partitions. */
export function isRefusedAsOld(error: unknown): boolean {
  return error instanceof RedisError && error.reply === REFUSAL;
}

/** The bucket that a message id tells; undefined for a key, and for ids that are not ours. */
export function bucketOfId(idOrKey: string): number | undefined {
  return isMessageId(idOrKey) ? bucketOf(parseMessageId(idOrKey).subarray(8)) : undefined;
}
