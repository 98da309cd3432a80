import { ClosedError } from "../../errors.ts";
import type { Call } from "../../queue/call.ts";
import { bucketOfKey } from "../../queue/message/bucket.ts";
import { bucketOf, isMessageId, parseMessageId } from "../../queue/message/message.ts";
import { Migration } from "./migration.ts";
import {
  activeOf,
  destinationOf,
  formatFact,
  ORDINARY,
  sourcesOf,
  type Fact,
} from "../ring/fact.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { isRefusedByFact } from "../parts/refusal.ts";

/** Acts on one part; `call` knows the fact that the scripts check there, if it is a partition. */
export type Act<Result> = (part: Part, call: Call | undefined) => Promise<Result>;

/** Sends an offer to one partition; passes `knownFact` to its script. */
export type Send<Result> = (part: Part, knownFact: string) => Promise<Result>;

/** An offer on its way to a partition. */
export interface Sending<Result> {
  readonly key: string | undefined;
  /** The facts by which it was sent so far: all attempts but the last one were refused as old. */
  readonly sentBy: Fact[];
  /** Asks the other partitions before it is sent, whether anything there makes it needless; see {@link Routing.elsewhere}. */
  readonly ask?: (fact: Fact) => Promise<Result | undefined>;
  /**
   * What finds the message where it is stored: as the ZSET holds it, or the key for one that collects, since the message that
   * has collected it has that. Undefined while it has no id: it was not sent then.
   */
  readonly stored: () => Buffer | string | undefined;
}

/**
 * Runs calls on the partition that a message belongs to.
 *
 * While the number of partitions changes, a call that looks for a message first migrates that message, and then asks
 * only its new partition. Asking both partitions would miss a message that migrates between the two questions. If Redis
 * refuses a script because the fact is old, the call starts again with the newer one.
 */
export class Routing {
  readonly migration: Migration;
  readonly #parts: Parts;
  readonly #underWay = new Set<Promise<unknown>>();
  #isClosed = false;
  /** Whether this client is leaving the ordinary queue: messages that it has left there are still being migrated. */
  isLeavingOrdinary = false;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.migration = new Migration(parts);
  }

  /**
   * Runs a call of one or more steps. {@link close} waits for it.
   *
   * @throws {ClosedError} after {@link close}.
   */
  async during<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#isClosed) throw new ClosedError(`queue "${this.#parts.name}"`);
    const calling = call();
    this.#underWay.add(calling);
    try {
      return await calling;
    } finally {
      this.#underWay.delete(calling);
    }
  }

  /**
   * A step of a call: migrates `idOrKey` to where messages of `bucket` belong, if it may be elsewhere; then acts there.
   */
  at<Result>(
    bucket: number,
    idOrKey: string | undefined,
    act: Act<Result>,
    call?: Call,
  ): Promise<Result> {
    return this.#withFact(async (fact) => {
      if (idOrKey !== undefined) await this.bring(fact, bucket, idOrKey);
      return await act(this.#parts.at(destinationOf(fact, bucket)), guarded(call, fact));
    }, call);
  }

  /**
   * A step of a call: sends an offer to where messages of `bucket` belong, as {@link at} does with its key.
   *
   * An attempt that is refused as old may be the second one: ioredis sends it again when its reply was lost. So before
   * the next attempt the message is migrated from wherever an earlier one may have stored it. Redis then finds it
   * there, and replies what it replied before.
   */
  send<Result>(
    bucket: number,
    sending: Sending<Result>,
    send: Send<Result>,
    call?: Call,
  ): Promise<Result> {
    const { key, sentBy, ask } = sending;
    return this.#withFact(async (fact) => {
      if (sentBy.length > 0) await this.#migrateSent(fact, bucket, sending);
      if (key !== undefined) await this.bring(fact, bucket, key);
      // Under the same fact: under a newer one, the message may have moved to a partition that was not searched.
      const found = await ask?.(fact);
      if (found !== undefined) return found;
      sentBy.push(fact);
      return await send(this.#parts.at(destinationOf(fact, bucket)), formatFact(fact));
    }, call);
  }

  /**
   * Looks by this fact into all partitions in which delivered messages of `bucket` may have stayed, but where they belong. What
   * was on its way from there has arrived then, so whoever asks next where they belong misses nothing.
   */
  async elsewhere<Result>(
    fact: Fact,
    bucket: number,
    look: Act<Result | undefined>,
    call?: Call,
  ): Promise<Result[]> {
    if (fact.epoch <= 1 && fact.state === "stable" && !this.isLeavingOrdinary) return [];
    const home = destinationOf(fact, bucket);
    const others = activeOf(fact).filter((partition) => partition !== home);
    if (this.isLeavingOrdinary && !others.includes(ORDINARY)) others.push(ORDINARY);
    const found = await Promise.all(
      others.map((partition) => look(this.#parts.at(partition), guarded(call, fact))),
    );
    // Whoever looks for a message in all partitions migrates it out of any of them, and not only out of those that are left.
    const sources =
      fact.state === "stable" ? others.filter((partition) => partition === ORDINARY) : others;
    await Promise.all(sources.map((source) => this.migration.finish(fact, source, call)));
    return found.filter((one) => one !== undefined);
  }

  /**
   * A step of a call of another queue: messages of `bucket` land where they belong, by its script, which passes `knownFact` on.
   * It is sent once, so no earlier attempt can have stored them.
   */
  land<Result>(
    bucket: number,
    keys: readonly string[],
    land: Send<Result>,
    call?: Call,
  ): Promise<Result> {
    return this.#withFact(async (fact) => {
      await Promise.all(keys.map((key) => this.bring(fact, bucket, key)));
      return await land(this.#parts.at(destinationOf(fact, bucket)), formatFact(fact));
    }, call);
  }

  /** Migrates what has an id or a key to where messages of `bucket` belong, if it may be elsewhere. */
  async bring(fact: Fact, bucket: number, idOrKey: string): Promise<void> {
    if (this.#mayBeElsewhere(fact, bucket)) await this.#migrate(fact, bucket, idOrKey);
  }

  /**
   * A step of a call: migrates a schedule to where it belongs, if it may be elsewhere; then acts there. `bring` migrates
   * messages of the schedule that the act is about to look for.
   */
  withSchedule<Result>(
    name: string,
    act: (
      part: Part,
      call: Call,
      bring: (ids: readonly string[]) => Promise<void>,
    ) => Promise<Result>,
    call?: Call,
  ): Promise<Result> {
    const bucket = bucketOfKey(name);
    return this.#withFact(async (fact) => {
      if (this.isLeavingOrdinary) await this.migration.migrateSchedules(fact, ORDINARY, [name]);
      await Promise.all(
        sourcesOf(fact, bucket).map((source) =>
          this.migration.migrateSchedules(fact, source, [name]),
        ),
      );
      const bring = async (ids: readonly string[]) => {
        if (!this.#mayBeElsewhere(fact, bucket)) return;
        await Promise.all(ids.map((id) => this.#migrate(fact, bucket, id)));
      };
      return await act(this.#parts.at(destinationOf(fact, bucket)), guarded(call, fact), bring);
    }, call);
  }

  /**
   * A step of a call: migrates `idOrKey` wherever it is, and then acts on all partitions at once. Returns all results;
   * or only the first hit (`isHit`) if there is one, even if other partitions failed.
   */
  everywhere<Result>(
    idOrKey: string | undefined,
    act: Act<Result>,
    isHit: (result: Result) => boolean,
    call?: Call,
  ): Promise<Result[]> {
    return this.#withFact(async (fact) => {
      const { active } = this.#parts;
      if (idOrKey !== undefined && this.isLeavingOrdinary) {
        await this.migration.migrate(fact, ORDINARY, idOrKey);
      }
      if (idOrKey !== undefined && fact.state !== "stable") {
        await Promise.all(
          active.map(({ partition }) => this.migration.migrate(fact, partition, idOrKey)),
        );
      }
      const acts = active.map((part) => act(part, guarded(call, fact)));
      const settled = await Promise.allSettled(acts);
      const results = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
      const hit = results.find(isHit);
      if (hit !== undefined) return [hit];
      const failed = settled.find((one) => one.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      return results;
    }, call);
  }

  /** Refuses further calls; resolves when the calls made so far are done. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
  }

  #mayBeElsewhere(fact: Fact, bucket: number): boolean {
    return this.isLeavingOrdinary || sourcesOf(fact, bucket).length > 0;
  }

  async #migrate(fact: Fact, bucket: number, idOrKey: string): Promise<void> {
    if (this.isLeavingOrdinary) await this.migration.migrate(fact, ORDINARY, idOrKey);
    await Promise.all(
      sourcesOf(fact, bucket).map((source) => this.migration.migrate(fact, source, idOrKey)),
    );
  }

  /**
   * Migrates what earlier attempts may have stored. Also finishes the open batches that may hold it, one partition
   * after the other: a batch of an earlier change may bring it to the source of this one.
   */
  async #migrateSent(
    fact: Fact,
    bucket: number,
    { sentBy, stored }: Pick<Sending<unknown>, "sentBy" | "stored">,
  ): Promise<void> {
    const sent = stored();
    if (sent === undefined) return;
    const partitions = new Set(sentBy.map((earlier) => destinationOf(earlier, bucket)));
    const last = sentBy.at(-1)?.epoch ?? 0;
    // A change is two facts. After more than one change, the message may have belonged to any partition in between.
    if (fact.epoch > last + 2) for (const partition of activeOf(fact)) partitions.add(partition);
    else partitions.delete(destinationOf(fact, bucket));
    for (const source of sourcesOf(fact, bucket)) {
      partitions.delete(source);
      partitions.add(source);
    }
    for (const partition of partitions) await this.migration.migrate(fact, partition, sent);
  }

  async #withFact<Result>(act: (fact: Fact) => Promise<Result>, call?: Call): Promise<Result> {
    let fact = this.#parts.following.fact ?? (await this.#parts.following.known(call));
    for (;;) {
      try {
        return await act(fact);
      } catch (error) {
        if (!isRefusedByFact(error)) throw error;
        fact = await this.#parts.following.newerThan(fact, error, call);
        call?.signal?.throwIfAborted();
      }
    }
  }
}

function guarded(call: Call | undefined, fact: Fact): Call {
  return { signal: call?.signal, knownFact: formatFact(fact) };
}

/** The bucket in a message id; undefined for a business key, and for an id that other software made. */
export function bucketOfId(idOrKey: string): number | undefined {
  return isMessageId(idOrKey) ? bucketOf(parseMessageId(idOrKey).subarray(8)) : undefined;
}
