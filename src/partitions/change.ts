import { advanceFact, changeFact, readFact } from "../lua/partitions/fact.ts";
import { drainPage, type Left } from "../lua/partitions/drain-page.ts";
import { removeRemains } from "../lua/partitions/remove-remains.ts";
import type { Batch } from "../lua/fragments/journal.ts";
import { MAX_PARTITIONS } from "../queue/options.ts";
import { Pause } from "../time/pause.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, parseFact, type Fact } from "./fact.ts";
import { activeOf, type Parts } from "./parts.ts";
import { fewAtOnce } from "./few-at-once.ts";
import { prepare } from "./preparation.ts";
import { tableOf } from "./ring.ts";
import { isRefusedAsOld, type Routing } from "./routing.ts";

/** How far a change of the number of partitions has come. */
export interface Progress {
  /** How many messages this call has brought over. */
  readonly moved: number;
  /** How many are left in partitions that go, as far as is known. */
  readonly left: number;
}

/** How a change is made. */
export interface ChangeOptions {
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (progress: Progress) => void;
  /** Whether the ordinary queue stays a part, for processes that offer to it still. */
  readonly keepsOrdinary: boolean;
}

/**
 * Changes the number of a queue's partitions, while it runs.
 *
 * Any process may begin it, and any may finish it: what is to be done stands in the fact. First every partition
 * is told, so that whoever knows less is refused. Then the delayed messages are brought over, a page at a time; then what is
 * left in partitions that go. Whoever looks for a message meanwhile brings it over himself.
 */
export class Change {
  readonly #parts: Parts;
  readonly #routing: Routing;
  readonly #options: ChangeOptions;
  #moved = 0;

  constructor(parts: Parts, routing: Routing, options: ChangeOptions) {
    this.#parts = parts;
    this.#routing = routing;
    this.#options = options;
  }

  /** Resolves when the queue has so many partitions, and all messages are where they belong. */
  async run(count: number): Promise<void> {
    const { signal } = this.#options;
    /** The last epoch in which it was on its way to this number. */
    let wasUnderWay = Infinity;
    for (;;) {
      signal?.throwIfAborted();
      const fact = await this.#parts.ask(signal);
      // It has had the number, and somebody else wants another one by now.
      if (fact.epoch > wasUnderWay) break;
      try {
        if (fact.state !== "stable") {
          const isWanted = fact.to === count;
          if (isWanted) wasUnderWay = fact.epoch;
          const keepsOrdinary =
            isWanted && fact.from === FROM_ORDINARY && this.#options.keepsOrdinary;
          await this.#finish(fact, keepsOrdinary);
          if (keepsOrdinary) return;
        } else if (fact.to === count) {
          break;
        } else {
          await this.#begin(fact, count);
        }
      } catch (error) {
        // Somebody else has gone on.
        if (!isRefusedAsOld(error)) throw error;
      }
    }
    try {
      await this.#lookAfter();
    } catch (error) {
      // Whoever changes it again does the same.
      if (!isRefusedAsOld(error)) throw error;
    }
  }

  /** What is left in a partition that is none any more goes to the others. */
  async drainLate(partition: number): Promise<void> {
    const fact = await this.#parts.known();
    if (fact.state !== "stable" || partition < fact.to) return;
    await this.#drain(fact, partition, false);
    const { queue } = this.#parts.at(partition);
    const options = { signal: this.#options.signal, knownFact: formatFact(fact) };
    await queue.read("tidy", removeRemains, {}, options);
  }

  /**
   * Brings over what somebody has left who has died: a batch under way, and what was given back to a partition that had
   * gone. They all know a fact.
   */
  async #lookAfter(): Promise<void> {
    const { signal } = this.#options;
    const fact = await this.#parts.known(signal);
    if (fact.state !== "stable") return;
    await fewAtOnce(activeOf(fact), (partition) => this.#finishBatch(fact, partition));
    for (let partition = fact.to; partition < MAX_PARTITIONS; partition++) {
      const { queue } = this.#parts.at(partition);
      if ((await queue.read("look into", readFact, {}, { signal })) === undefined) return;
      await this.drainLate(partition);
    }
  }

  async #begin(fact: Fact, count: number): Promise<void> {
    const isExclusive = this.#parts.members.some(({ roles }) => roles.isExclusive);
    await this.#replace(fact, {
      epoch: fact.epoch + 1,
      to: count,
      from: fact.to,
      state: isExclusive ? "holding" : "moving",
      servers: fact.servers,
    });
  }

  async #finish(fact: Fact, keepsOrdinary: boolean): Promise<void> {
    await prepare(this.#parts, fact, this.#options.signal);
    await this.#tellAll(fact);
    const { from, to } = fact;
    // What is under way since an earlier change goes where it went then.
    await fewAtOnce(activeOf(fact), (partition) => this.#finishBatch(fact, partition));
    // A growing number takes from all, a shrinking one from those that go.
    const first = to < from ? to : 0;
    const sources =
      from === FROM_ORDINARY
        ? [ORDINARY]
        : Array.from({ length: from - first }, (_, i) => first + i);
    await fewAtOnce(sources, (source) => this.#bringAll(fact, source));
    if (keepsOrdinary) return;
    const going = from === FROM_ORDINARY || to < from ? sources : [];
    await fewAtOnce(going, (source) => this.#drain(fact, source, true));
    if (fact.state === "holding") await this.#allHandled(fact);
    await this.#settle(fact);
  }

  /**
   * The change is done. Partition 0 is told last: nobody takes anything out of the others any more by then, and what
   * somebody has taken out meanwhile has arrived.
   */
  async #settle(fact: Fact): Promise<void> {
    const stable: Fact = { ...fact, epoch: fact.epoch + 1, from: fact.to, state: "stable" };
    const others = activeOf(fact).filter((partition) => partition !== 0);
    await fewAtOnce(others, (partition) => this.#finishBatch(stable, partition));
    await this.#replace(fact, stable);
    await this.#finishBatch(stable, 0);
    await fewAtOnce(others, (partition) => this.drainLate(partition));
  }

  #finishBatch(fact: Fact, partition: number): Promise<void> {
    return this.#routing.bringOver.finish(fact, partition, this.#options.signal);
  }

  /** From now on every partition refuses whoever knows less. */
  async #tellAll(fact: Fact): Promise<void> {
    const { signal } = this.#options;
    const { notice } = this.#parts;
    await fewAtOnce(activeOf(fact), async (partition) => {
      const { queue } = this.#parts.at(partition);
      const args = { fact: formatFact(fact), notice };
      this.#parts.learn(await queue.read("tell the partitions of", advanceFact, args, { signal }));
    });
  }

  /** Brings over what is delayed in a partition, and belongs elsewhere. */
  async #bringAll(fact: Fact, source: number): Promise<void> {
    const { signal } = this.#options;
    let cursor: Buffer | undefined;
    do {
      signal?.throwIfAborted();
      const page = await this.#routing.bringOver.bringPage(fact, source, cursor, signal);
      this.#note(page.count, 0);
      cursor = page.next;
    } while (cursor !== undefined);
  }

  /** Brings over all that is left in a partition that goes; waits for what is in hand if it `mayWait`. */
  async #drain(fact: Fact, source: number, mayWait: boolean): Promise<void> {
    const { signal } = this.#options;
    const pause = new Pause(10, 500);
    for (;;) {
      signal?.throwIfAborted();
      await this.#bringAll(fact, source);
      const args = {
        limit: PAGE,
        maxBytes: PAGE_BYTES,
        into: Math.max(0, source) % fact.to,
        buckets: Buffer.from(tableOf(fact.to)),
        timeout: FOREIGN_TIMEOUT,
      };
      const { queue } = this.#parts.at(source);
      const options = { signal, knownFact: formatFact(fact) };
      const page = await queue.read("bring over from", drainPage, args, options);
      await this.#routing.bringOver.deliver(fact, source, page satisfies Batch);
      const left = sum(page.left);
      this.#note(page.isOld ? 0 : page.rows.length, left);
      if (page.rows.length > 0 || page.isMore) continue;
      if (left === 0 || !mayWait) return;
      await pause.wait();
    }
  }

  /** Waits until nothing that is ready is left, and no handler is at work: only then may others get the keys. */
  async #allHandled(fact: Fact): Promise<void> {
    const { signal } = this.#options;
    const pause = new Pause(20, 200);
    for (let partition = 0; partition < fact.from; partition++) {
      for (;;) {
        signal?.throwIfAborted();
        if (await this.#parts.isIdle(partition, fact)) break;
        await pause.wait();
      }
    }
  }

  async #replace(fact: Fact, by: Fact): Promise<void> {
    const { signal } = this.#options;
    const { first, notice } = this.#parts;
    const args = { expected: formatFact(fact), fact: formatFact(by), notice };
    const found = await first.queue.read("change the partitions of", changeFact, args, { signal });
    if (parseFact(found) === undefined) throw new TypeError(`no legal fact: ${found}`);
    this.#parts.learn(found);
  }

  #note(moved: number, left: number): void {
    this.#moved += moved;
    if (moved > 0 || left > 0) this.#options.onProgress({ moved: this.#moved, left });
  }
}

function sum({ delayed, ready, inFlight, dead, quarantined, retrying }: Left): number {
  return delayed + ready + inFlight + dead + quarantined + retrying;
}

/** What one script takes out: a millisecond of Redis's time at most. */
const PAGE = 100;
const PAGE_BYTES = 262_144;

/** After how many milliseconds of silence a consumer is taken for dead whose name does not tell. */
const FOREIGN_TIMEOUT = 30_000;
