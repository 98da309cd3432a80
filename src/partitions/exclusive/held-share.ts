import type { Work } from "../../redis/troubles.ts";
import { Holding, type Tenure } from "./holding.ts";
import type { Lease } from "./lease.ts";
import type { Part } from "../parts/part.ts";
import type { Parts } from "../parts/parts.ts";
import { holdersOf } from "../ring/shares.ts";

/** Starts to consume a partition for as long as the lease lasts. */
export type Consume = (part: Part, lease: Lease) => Tenure;

/**
 * This process's share of the partitions of a queue that is consumed exclusively.
 *
 * All exclusive consumers divide the partitions evenly: each computes the same from the members that were seen lately.
 * A process whose share shrinks lets the handler finish, releases the partition and publishes that, and the new holder
 * takes it. If processes know different members for a moment, one has to wait for the lease, which alone decides.
 *
 * While the number of partitions changes, no process holds a partition: each holder lets its handler finish and releases
 * its lease, and the change takes it.
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
    parts.following.attend({ isExclusive: true });
    this.#onChange();
  }

  /** Lets running handlers finish; resolves when every partition is released. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#unlisten();
    // A change that begins now has to wait for the handlers that still run.
    this.#parts.following.attend({ isExclusive: false, isReleasing: true });
    for (const partition of this.#holdings.keys()) this.#end(partition);
    await Promise.all(this.#endings.values());
    this.#parts.following.attend({ isReleasing: false });
  }

  #onChange(): void {
    if (this.#isEnded) return;
    const wanted = this.#wanted;
    for (const [partition, holding] of this.#holdings) {
      if (wanted.has(partition)) holding.wake();
      else this.#end(partition);
    }
    for (const partition of wanted) {
      // A partition that is being released is taken again afterwards.
      if (this.#holdings.has(partition) || this.#endings.has(partition)) continue;
      this.#holdings.set(partition, this.#hold(partition));
    }
  }

  /** The partitions that this process has to hold. */
  get #wanted(): ReadonlySet<number> {
    const { fact, exclusive, self } = this.#parts.following;
    if (fact?.state !== "stable") return new Set();
    const holders = holdersOf(exclusive, fact.to);
    return new Set(holders.flatMap((holder, partition) => (holder === self ? [partition] : [])));
  }

  #hold(partition: number): Holding {
    const part = this.#parts.at(partition);
    const { takes, renewals } = this.#work;
    const { following } = this.#parts;
    const claim = {
      part,
      process: following.self,
      group: this.#group,
      knownFact: () => following.text,
      work: renewals,
    };
    return new Holding(claim, {
      begin: (lease) => this.#consume(part, lease),
      onReleased: () => this.#parts.following.announceRelease(),
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
