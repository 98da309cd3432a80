import type { Batch } from "../../lua/fragments/journal.ts";
import {
  dropBatch,
  FIRST_PAGE,
  pullOut,
  pullOutOnce,
  pullOutPage,
  pullOutSchedules,
} from "../../lua/partitions/pull-out.ts";
import { pushIn } from "../../lua/partitions/push-in.ts";
import type { Call } from "../../queue/call.ts";
import { grouped } from "../../queue/grouped.ts";
import { bucketOfKey } from "../../queue/message/bucket.ts";
import { whichOf } from "../../queue/message/message.ts";
import { TurnBatch } from "../../queue/turn-batch.ts";
import type { Parts } from "../parts/parts.ts";
import { destinationOf, formatFact, type Fact } from "../ring/fact.ts";
import { tableOf } from "../ring/ring.ts";

/** A message to migrate from `source` to where it belongs. */
interface Wanted {
  readonly fact: Fact;
  readonly source: number;
  /** The address, the business key or the member of the message; the others are empty. */
  readonly row: Readonly<Record<"id" | "key" | "member", Buffer | string>>;
}

/**
 * Migrates messages from the partition that they belonged to before a change to the one that they belong to now.
 *
 * Each message migrates exactly once, without a lock: one script takes it out of its partition into a journal there,
 * one puts it into the other partition unless that has had the same batch already, and one drops the batch from the
 * journal. Any process that meets an open batch finishes it. Every step can be repeated safely, so all of them use the
 * connection that resends commands whose reply was lost.
 */
export class Migration {
  readonly #parts: Parts;
  readonly #wanted = new TurnBatch<Wanted, void>({
    send: (batch) => this.#pull(batch.seal()),
    kindOf: ({ fact, source }) => `${source} ${fact.epoch}`,
    sizeOf: ({ row: { id, key, member } }) => id.length + key.length + member.length,
    giveUp: (why) => why,
  });

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Migrates one message out of `source`, if it is there. After that the message is where the fact says, or nowhere. `which` is
   * its id, its key, or its bytes in the ZSET: an offer that is sent again has no id to show yet.
   *
   * @throws {RedisError} if a step is refused; with the reply `PARTITIONS` if the fact is an old one.
   */
  migrate(fact: Fact, source: number, which: string | Buffer): Promise<void> {
    const row =
      typeof which === "string"
        ? { ...whichOf(which), member: "" }
        : { id: "", key: "", member: which };
    return this.#wanted.add({ fact, source, row });
  }

  /** As {@link migrate}, for schedules. Their messages migrate as all others do. */
  async migrateSchedules(fact: Fact, source: number, names: readonly string[]): Promise<void> {
    const { queue } = this.#parts.at(source);
    const rows = names.map((name) => ({
      schedule: name,
      to: destinationOf(fact, bucketOfKey(name)),
    }));
    const options = { knownFact: formatFact(fact), rows };
    for (;;) {
      const doing = "migrate schedules from";
      const batch = await queue.read(doing, pullOutSchedules, { own: source }, options);
      await this.deliver(fact, source, batch);
      if (!batch.isOld) return;
    }
  }

  /** Migrates all schedules that belong elsewhere. Under this fact no process adds any to `source`. */
  async migrateAllSchedules(fact: Fact, source: number, call?: Call): Promise<void> {
    const names: string[] = [];
    for await (const { name } of this.#parts.at(source).schedules.all(call)) {
      if (destinationOf(fact, bucketOfKey(name)) !== source) names.push(name);
    }
    for (let from = 0; from < names.length; from += PAGE) {
      await this.migrateSchedules(fact, source, names.slice(from, from + PAGE));
    }
  }

  /** Migrates what `source` remembers of handled messages that were offered with `once`. It must have no other messages any more. */
  async migrateOnce(fact: Fact, source: number, call?: Call): Promise<void> {
    const args = { ...argsOf(fact, source), limit: PAGE };
    const options = { ...call, knownFact: formatFact(fact) };
    const { queue } = this.#parts.at(source);
    for (;;) {
      const page = await queue.read("migrate messages from", pullOutOnce, args, options);
      await this.deliver(fact, source, page);
      if (!page.isMore) return;
    }
  }

  /**
   * Migrates a page of the delayed messages of `source`, from the latest deadline down, and after them the retries.
   * Returns the next cursor, undefined at the end, and how many have migrated.
   */
  async migratePage(
    fact: Fact,
    source: number,
    cursor: Buffer = FIRST_PAGE,
    call?: Call,
  ): Promise<{ readonly next: Buffer | undefined; readonly count: number }> {
    const args = { ...argsOf(fact, source), cursor, limit: PAGE, maxBytes: PAGE_BYTES };
    const options = { ...call, knownFact: formatFact(fact) };
    const { queue } = this.#parts.at(source);
    const page = await queue.read("migrate messages from", pullOutPage, args, options);
    await this.deliver(fact, source, page);
    return { next: page.next, count: page.isOld ? 0 : page.rows.length };
  }

  /**
   * Finishes the open batch of `source`, if there is one: its process may have died. From then on Redis refuses to take
   * anything out of `source` for a process that knows less than `fact`.
   */
  async finish(fact: Fact, source: number, call?: Call): Promise<void> {
    const { queue } = this.#parts.at(source);
    const options = { ...call, rows: [], knownFact: formatFact(fact) };
    const batch = await queue.read("look into", pullOut, argsOf(fact, source), options);
    await this.deliver(fact, source, batch);
  }

  /** Puts the rows of a batch into their partitions, and drops the batch. */
  async deliver(fact: Fact, source: number, { number, rows }: Batch): Promise<void> {
    if (number === 0) return;
    const knownFact = formatFact(fact);
    const destinations = grouped(rows, ({ to }) => to);
    await Promise.all(
      Array.from(destinations, ([to, some]) => {
        const { queue } = this.#parts.at(to);
        const args = { channel: queue.keys.channel, source, number };
        return queue.read("migrate messages to", pushIn, args, { rows: some, knownFact });
      }),
    );
    const { queue } = this.#parts.at(source);
    await queue.read("migrate messages from", dropBatch, { number }, { knownFact });
  }

  async #pull(requests: readonly Wanted[]): Promise<void[]> {
    const [first] = requests;
    if (first === undefined) return [];
    const { fact, source } = first;
    const { queue } = this.#parts.at(source);
    const options = {
      knownFact: formatFact(fact),
      rows: requests.map(({ row }) => row),
    };
    const args = argsOf(fact, source);
    for (;;) {
      const batch = await queue.read("migrate messages from", pullOut, args, options);
      await this.deliver(fact, source, batch);
      if (!batch.isOld) return requests.map(() => undefined);
    }
  }
}

/** The arguments by which a script decides where a message belongs. */
function argsOf(fact: Fact, source: number): { readonly own: number; readonly buckets: Buffer } {
  return { own: source, buckets: Buffer.from(tableOf(fact.to)) };
}

/** Messages and bytes that one script takes out at most, so that it occupies Redis for about a millisecond. */
const PAGE = 100;
const PAGE_BYTES = 262_144;
