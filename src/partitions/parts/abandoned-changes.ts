import { presenceTime } from "../../time/runtime.ts";
import { isWithOrdinary } from "../ring/fact.ts";
import { movers } from "../ring/shares.ts";
import type { Following } from "./following.ts";

/**
 * Finishes changes of the number of partitions whose process has died.
 *
 * The processes try one after another, in an order that all of them compute alike: one is enough, though several would
 * do no harm.
 */
export class AbandonedChanges {
  readonly #following: Following;
  readonly #finish: () => Promise<boolean>;
  /** How many changes this client works on. */
  #working = 0;
  /** Since when the change under way has stood still (`presenceTime.now()`). */
  #abandonedAt: number | undefined;
  /** Processes that died while they worked on a change, and that this client has not looked after yet. */
  readonly #died = new Set<string>();
  /** Those that it has looked after. */
  readonly #lookedAfter = new Set<string>();
  /** Until when this client leaves it to others to finish the change (`presenceTime.now()`). */
  #restsUntil = -Infinity;

  /** `finish` finishes the change under way, and returns whether it has. */
  constructor(following: Following, finish: () => Promise<boolean>) {
    this.#following = following;
    this.#finish = finish;
    following.onSeen(() => this.#lookAfter());
  }

  /** Works on a change, and tells the other processes so. */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#working++ === 0) this.#following.attend({ isChanging: true });
    try {
      return await work();
    } finally {
      if (--this.#working === 0) this.#following.attend({ isChanging: false });
    }
  }

  /**
   * Finishes the change under way if no other process works on it.
   *
   * A process that dies at the very end of its change may leave a batch open though the fact is stable already. So that
   * is looked after as well, once for each such process.
   *
   * While the ordinary queue is a part, its processes may still be there unseen: the next `setPartitions` finishes.
   *
   * Returns whether there is anything to look after.
   */
  #lookAfter(): boolean {
    const { fact, self, members, changers } = this.#following;
    this.#noteDied(changers.silent);
    const isOpen = fact !== undefined && fact.state !== "stable" && !isWithOrdinary(fact);
    const isNeeded = isOpen || this.#died.size > 0;
    if (!isNeeded || this.#working > 0 || changers.alive.length > 0) {
      this.#abandonedAt = undefined;
      return isNeeded;
    }
    const now = presenceTime.now();
    if (now < this.#restsUntil) return true;
    this.#abandonedAt ??= now;
    const names = members.map(({ name }) => name).filter((name) => !this.#died.has(name));
    const rank = movers(names, 0, names.length).indexOf(self);
    if (now - this.#abandonedAt < rank * HEAD_START) return true;
    void this.#goOn([...this.#died], names.length);
    return true;
  }

  /** Goes on for the processes that died. Never rejects. */
  async #goOn(died: readonly string[], alive: number): Promise<void> {
    await this.during(async () => {
      if (await this.#finish()) {
        for (const name of died) {
          this.#lookedAfter.add(name);
          this.#died.delete(name);
        }
        return;
      }
      // Another process may be permitted what this one is not. Each tries once before this one tries again.
      this.#restsUntil = presenceTime.now() + Math.max(1, alive) * HEAD_START;
    });
  }

  /** Notes the processes that have fallen silent in the middle of a change. Soon they are members no more. */
  #noteDied(silent: readonly string[]): void {
    for (const name of silent) if (!this.#lookedAfter.has(name)) this.#died.add(name);
    for (const { name } of this.#following.members) {
      if (!silent.includes(name)) this.#died.delete(name);
    }
  }
}

/** Milliseconds until the next process tries to finish a change that was abandoned. */
const HEAD_START = 3000;
