import type { Work } from "../../redis/troubles.ts";
import { Holding, type Tenure } from "./holding.ts";
import type { Lease } from "./lease.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { holdersOf } from "../ring/shares.ts";

/** Consumes a partition as long as the lease lasts. */
export type Consume = (part: Part, lease: Lease) => Tenure;

/**
 * This process's part in the exclusive consumption of a queue: it holds its share of the partitions.
 *
 * All who consume it share the partitions out evenly; everyone computes the same from the members that were seen lately.
 * Who does not hold a partition any more finishes what it has in hand, releases it and says so, and the other takes
 * it. Whoever thinks of other members for a moment waits for the lease: that alone decides.
 *
 * While the number of partitions changes (`holding`) the holders go on with what is ready in the old partitions, and
 * nobody takes from the new ones. A change that began before anybody consumed exclusively (`moving`) is waited for.
 */
export class HeldShare {
  readonly #parts: Parts;
  readonly #consume: Consume;
  readonly #group: string | undefined;
  readonly #work: { readonly takes: Work; readonly renewals: Work };
  readonly #holdings = new Map<number, Holding>();
  readonly #endings = new Map<number, Promise<void>>();
  readonly #unlisten: () => void;
  #isEnded = false;

  constructor(
    parts: Parts,
    host: {
      readonly consume: Consume;
      readonly group?: string | undefined;
      readonly work: { readonly takes: Work; readonly renewals: Work };
    },
  ) {
    this.#parts = parts;
    this.#consume = host.consume;
    this.#group = host.group;
    this.#work = host.work;
    this.#unlisten = parts.onChange(() => this.#onChange());
    parts.attend({ isExclusive: true });
    this.#onChange();
  }

  /** The partitions that it holds, or is about to. */
  get partitions(): readonly number[] {
    return [...this.#holdings.keys()];
  }

  /** Finishes what is in hand, and releases everything; resolves when that is done. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#unlisten();
    // A change that begins meanwhile has to wait for the handlers.
    this.#parts.attend({ isExclusive: false, isReleasing: true });
    for (const partition of this.#holdings.keys()) this.#end(partition);
    await Promise.all(this.#endings.values());
    this.#parts.attend({ isReleasing: false });
  }

  #onChange(): void {
    if (this.#isEnded) return;
    const wanted = this.#wanted;
    for (const [partition, holding] of this.#holdings) {
      if (wanted.has(partition)) holding.onChange();
      else this.#end(partition);
    }
    for (const partition of wanted) {
      // One that is being released is taken again when that is done.
      if (this.#holdings.has(partition) || this.#endings.has(partition)) continue;
      this.#holdings.set(partition, this.#hold(partition));
    }
  }

  /** What this process has to hold. */
  get #wanted(): ReadonlySet<number> {
    const { fact, exclusive, self } = this.#parts;
    if (fact === undefined || fact.state === "moving") return new Set();
    const count = fact.state === "holding" ? fact.from : fact.to;
    const holders = holdersOf(exclusive, count);
    return new Set(holders.flatMap((holder, partition) => (holder === self ? [partition] : [])));
  }

  #hold(partition: number): Holding {
    const part = this.#parts.at(partition);
    const { takes, renewals } = this.#work;
    const claim = { part, process: this.#parts.self, group: this.#group, work: renewals };
    return new Holding(claim, {
      begin: (lease) => this.#consume(part, lease),
      onReleased: () => this.#parts.announceRelease(),
      takes,
    });
  }

  #end(partition: number): void {
    const holding = this.#holdings.get(partition);
    if (holding === undefined) return;
    this.#holdings.delete(partition);
    holding.end();
    const ending = holding.done.finally(() => {
      this.#endings.delete(partition);
      this.#onChange();
    });
    this.#endings.set(partition, ending);
  }
}
