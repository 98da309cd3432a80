import type { Batch } from "../../lua/fragments/partitions/journal.ts";
import { dropBatch } from "../../lua/partitions/drop-batch.ts";
import { FIRST_PAGE, pullOutPage } from "../../lua/partitions/pull-out-page.ts";
import { pullOutIds, pullOutKeys } from "../../lua/partitions/pull-out.ts";
import { pushIn } from "../../lua/partitions/push-in.ts";
import { isMessageId, parseMessageId } from "../../queue/message/message.ts";
import { TurnBatch } from "../../queue/turn-batch.ts";
import { formatFact, type Fact } from "../ring/fact.ts";
import { grouped } from "../ring/grouped.ts";
import type { Parts } from "../parts/parts.ts";
import { tableOf } from "../ring/ring.ts";

/** A message that is to be where it belongs. */
interface Wanted {
  readonly fact: Fact;
  readonly source: number;
  readonly idOrKey: string;
}

/**
 * Brings messages from the partition that they belonged to to the one that they belong to.
 *
 * Each is brought over exactly once, without a lock: it is taken out of its partition into a journal there, put into the
 * other one unless it has had that batch already, and dropped from the journal. Whoever meets an open batch
 * finishes it. So every step may be done twice, and goes through the connection that sends again what had no reply.
 */
export class BringOver {
  readonly #parts: Parts;
  readonly #wanted = new TurnBatch<Wanted, void>({
    send: (batch) => this.#pull(batch.claim()),
    kindOf: ({ fact, source, idOrKey }) =>
      `${isMessageId(idOrKey) ? "id" : "key"} ${source} ${fact.epoch}`,
    sizeOf: ({ idOrKey }) => idOrKey.length,
    giveUp: (why) => why,
  });

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Brings a message over from `source`, if it is there; after that it is where the fact says, or nowhere.
   *
   * @throws {RedisError} if a step is refused; with the reply `PARTITIONS` if the fact is an old one.
   */
  bring(fact: Fact, source: number, idOrKey: string): Promise<void> {
    return this.#wanted.add({ fact, source, idOrKey });
  }

  /**
   * Brings over a page of all that is delayed in `source`, from the latest deadline down, and at last what waits for a
   * retry. Returns where to go on, undefined at the end, and how many it has brought.
   */
  async bringPage(
    fact: Fact,
    source: number,
    cursor: Buffer = FIRST_PAGE,
    signal?: AbortSignal,
  ): Promise<{ readonly next: Buffer | undefined; readonly count: number }> {
    const args = { ...argsOf(fact, source), cursor, limit: PAGE, maxBytes: PAGE_BYTES };
    const options = { signal, knownFact: formatFact(fact) };
    const { queue } = this.#parts.at(source);
    const page = await queue.read("bring over from", pullOutPage, args, options);
    await this.deliver(fact, source, page);
    return { next: page.next, count: page.isOld ? 0 : page.rows.length };
  }

  /**
   * Finishes the batch that is under way from `source`, if there is one: somebody may have died over it. After that
   * whoever knows less than `fact` takes nothing out of it any more.
   */
  async finish(fact: Fact, source: number, signal?: AbortSignal): Promise<void> {
    const { queue } = this.#parts.at(source);
    const options = { signal, rows: [], knownFact: formatFact(fact) };
    const batch = await queue.read("look into", pullOutKeys, argsOf(fact, source), options);
    await this.deliver(fact, source, batch);
  }

  /** Puts what a batch holds where it goes, and drops it. */
  async deliver(fact: Fact, source: number, { number, rows }: Batch): Promise<void> {
    if (number === 0) return;
    const knownFact = formatFact(fact);
    const destinations = grouped(rows, ({ to }) => to);
    await Promise.all(
      Array.from(destinations, ([to, some]) => {
        const { queue } = this.#parts.at(to);
        const args = { channel: queue.keys.channel, source, number };
        return queue.read("bring into", pushIn, args, { rows: some, knownFact });
      }),
    );
    await this.#parts
      .at(source)
      .queue.read("bring over from", dropBatch, { number }, { knownFact });
  }

  async #pull(wanted: readonly Wanted[]): Promise<void[]> {
    const [first] = wanted;
    if (first === undefined) return [];
    const { fact, source } = first;
    const { queue } = this.#parts.at(source);
    const options = { knownFact: formatFact(fact) };
    const args = argsOf(fact, source);
    const ids = wanted.flatMap(({ idOrKey }) =>
      isMessageId(idOrKey) ? [parseMessageId(idOrKey)] : [],
    );
    const keys = wanted.map(({ idOrKey }) => ({ wanted: idOrKey }));
    const rows = ids.length > 0 ? ids.map((id) => ({ wanted: id })) : keys;
    const script = ids.length > 0 ? pullOutIds[queue.layout.into] : pullOutKeys;
    for (;;) {
      const batch = await queue.read("bring over from", script, args, { ...options, rows });
      await this.deliver(fact, source, batch);
      if (!batch.isOld) return wanted.map(() => undefined);
    }
  }
}

/** What tells a script where each message belongs. */
function argsOf(fact: Fact, source: number): { readonly own: number; readonly buckets: Buffer } {
  return { own: source, buckets: Buffer.from(tableOf(fact.to)) };
}

/** Messages that one script takes out: a millisecond of Redis's time at most. */
const PAGE = 100;
const PAGE_BYTES = 262_144;
