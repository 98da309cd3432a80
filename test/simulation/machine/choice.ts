import type { Random } from "../random.ts";

/** Something that may happen next. */
export interface Candidate {
  /** Who does it: a connection in one direction, a process's timers. Things of one line keep their order. */
  readonly line: number;
  /** Since when it has been held. */
  readonly since: number;
}

/**
 * Decides what happens next. Each seed has a manner, since no single one finds everything:
 *
 * - `even`: everything is equally likely;
 * - `ranked`: lines have ranks, and the highest one goes first; now and then a rank is drawn again. So some are far
 *   ahead, and others are late (as in probabilistic concurrency testing);
 * - `aged`: mostly the oldest first, as on a quiet machine.
 */
export class Choice {
  readonly #random: Random;
  readonly #manner: "even" | "ranked" | "aged";
  readonly #ranks = new Map<number, number>();
  readonly #chance: number;

  constructor(random: Random) {
    this.#random = random;
    this.#manner = random.weighted({ even: 4, ranked: 4, aged: 2 });
    this.#chance = random.magnitude(0.01, 0.3);
  }

  get manner(): string {
    return this.#manner;
  }

  /** Picks one; with `isOrderly`, the oldest. */
  next<Some extends Candidate>(candidates: readonly Some[], isOrderly: boolean): Some {
    const random = this.#random;
    if (isOrderly) return oldest(candidates);
    if (this.#manner === "aged" && !random.chance(this.#chance)) return oldest(candidates);
    if (this.#manner !== "ranked") return random.pick(candidates);
    const best = candidates.reduce((a, b) => (this.#rankOf(b) > this.#rankOf(a) ? b : a));
    if (random.chance(this.#chance)) this.#ranks.set(best.line, random.next());
    return best;
  }

  #rankOf({ line }: Candidate): number {
    let rank = this.#ranks.get(line);
    if (rank === undefined) this.#ranks.set(line, (rank = this.#random.next()));
    return rank;
  }
}

function oldest<Some extends Candidate>(candidates: readonly Some[]): Some {
  return candidates.reduce((a, b) => (b.since < a.since ? b : a));
}
