import { setMaxListeners } from "node:events";
import { advanceFact, beginChange, changeFact, readFact } from "../../lua/partitions/fact.ts";
import { drainPage, type Left } from "../../lua/partitions/drain-page.ts";
import { removeRemains } from "../../lua/partitions/remove-remains.ts";
import type { Batch } from "../../lua/fragments/partitions/journal.ts";
import { MAX_PARTITIONS } from "../../queue/options.ts";
import { Pause } from "../../time/pause.ts";
import { FROM_ORDINARY, formatFact, ORDINARY, parseFact, type Fact } from "../ring/fact.ts";
import { MEMBER_TIMEOUT } from "../parts/fact-watch.ts";
import { fewAtOnce } from "./few-at-once.ts";
import { activeOf, type Parts } from "../parts/parts.ts";
import { isInUse, prepare } from "../parts/prepare.ts";
import { tableOf } from "../ring/ring.ts";
import { isRefusedAsOld, type Routing } from "../routing/routing.ts";

/** How far a change of the number of partitions has come. */
export interface ChangeProgress {
  /** How many messages this call has brought over. */
  readonly moved: number;
  /** How many are left in partitions that go, as far as is known. */
  readonly left: number;
}

/** How a change is made. */
export interface ChangeOptions {
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (progress: ChangeProgress) => void;
  /** Whether the ordinary queue becomes a part, or stays one, for processes that still use it. */
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
    // Several steps listen at once.
    if (options.signal !== undefined) setMaxListeners(0, options.signal);
  }

  /**
   * Resolves when the queue has so many partitions, and all messages are where they belong. What is in the ordinary
   * queue of the same name is taken in, even if the number stays; with `keepsOrdinary` it becomes a part, and keeps
   * what is in it.
   */
  async run(count: number): Promise<void> {
    const { signal, keepsOrdinary } = this.#options;
    let hasComeTrue = false;
    let hasTakenIn = false;
    for (;;) {
      signal?.throwIfAborted();
      const fact = await this.#parts.ask(signal);
      const { from, to, state } = fact;
      try {
        if (state === "stable" && to === count) {
          if (!keepsOrdinary && (hasTakenIn || !(await this.#isOrdinaryLeft()))) break;
          await this.#begin(fact, count, FROM_ORDINARY);
        } else if (hasComeTrue && !keepsOrdinary) {
          // Somebody else wants another number.
          break;
        } else if (state === "stable") {
          await this.#begin(fact, count, to);
        } else if (keepsOrdinary && from === FROM_ORDINARY && to === count) {
          return await this.#announce(fact);
        } else {
          await this.#finish(fact);
        }
      } catch (error) {
        // Somebody else has gone on.
        if (!isRefusedAsOld(error)) throw error;
      }
      // Whoever has gone on has finished it before: nothing else follows upon a change.
      if (state !== "stable") {
        hasComeTrue ||= to === count;
        hasTakenIn ||= from === FROM_ORDINARY;
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
    const isGone = partition === ORDINARY || partition >= fact.to;
    if (fact.state !== "stable" || !isGone) return;
    await this.#drain(fact, partition, false);
    if (partition === ORDINARY) return;
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

  /** Whether processes that know of no partitions have left something behind. */
  #isOrdinaryLeft(): Promise<boolean> {
    return isInUse(this.#parts.ordinary, "left", this.#options.signal);
  }

  async #begin(fact: Fact, count: number, from: number): Promise<void> {
    const { signal } = this.#options;
    const { first, notice } = this.#parts;
    const by = { ...fact, epoch: fact.epoch + 1, to: count, from };
    // Before anybody can know of the new ones, and again when it goes on: others may have been slower to pause them.
    await prepare((partition) => this.#parts.at(partition), { ...by, state: "moving" }, signal);
    const args = {
      expected: formatFact(fact),
      fact: formatFact({ ...by, state: "moving" }),
      holding: formatFact({ ...by, state: "holding" }),
      notice,
      timeout: MEMBER_TIMEOUT,
    };
    this.#learn(await first.queue.read("change the partitions of", beginChange, args, { signal }));
  }

  /** From now on every partition is ready for messages, and refuses whoever knows less. */
  async #announce(fact: Fact): Promise<void> {
    await prepare((partition) => this.#parts.at(partition), fact, this.#options.signal);
    await this.#tellAll(fact);
  }

  async #finish(fact: Fact): Promise<void> {
    await this.#announce(fact);
    const { from, to } = fact;
    // What is under way since an earlier change goes where it went then.
    await fewAtOnce(activeOf(fact), (partition) => this.#finishBatch(fact, partition));
    // A growing number takes from all, a shrinking one from those that go.
    const first = to < from ? to : 0;
    const sources =
      from === FROM_ORDINARY
        ? [ORDINARY]
        : Array.from({ length: from - first }, (_, i) => first + i);
    const bringAll = () => fewAtOnce(sources, (source) => this.#bringAll(fact, source));
    if (fact.state === "holding") {
      await Promise.all([bringAll(), this.#allHandled(fact)]);
      // Those that have failed meanwhile.
      await fewAtOnce(sources, (source) => this.#bringAll(fact, source, RETRIES));
    } else {
      await bringAll();
    }
    const going = from === FROM_ORDINARY || to < from ? sources : [];
    await fewAtOnce(going, (source) => this.#drain(fact, source, true));
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
  async #bringAll(fact: Fact, source: number, first?: Buffer): Promise<void> {
    const { signal } = this.#options;
    let cursor = first;
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
        if (await this.#parts.isHandled(partition, fact, signal)) break;
        await pause.wait();
      }
    }
  }

  async #replace(fact: Fact, by: Fact): Promise<void> {
    const { signal } = this.#options;
    const { first, notice } = this.#parts;
    const args = { expected: formatFact(fact), fact: formatFact(by), notice };
    this.#learn(await first.queue.read("change the partitions of", changeFact, args, { signal }));
  }

  #learn(found: string): void {
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

/** The cursor behind the delayed messages of a partition; see `pullOutPage`. */
const RETRIES = Buffer.from("r");

/** What one script takes out: a millisecond of Redis's time at most. */
const PAGE = 100;
const PAGE_BYTES = 262_144;

/** After how many milliseconds of silence a consumer is taken for dead whose name does not tell. */
const FOREIGN_TIMEOUT = 30_000;
