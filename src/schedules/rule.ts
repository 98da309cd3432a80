/** When a schedule recurs, and what happens to ticks that are late, as Redis stores it. Instants are epoch ms. */
export interface Rule {
  /** Milliseconds between two ticks; undefined with another calendar. */
  readonly every?: number;
  readonly phase?: number;
  /** A cron pattern; undefined with another calendar. */
  readonly cron?: string;
  /** The time zone of the pattern, and of the days in `except`. */
  readonly timeZone: string;
  readonly startAt?: number;
  /** Inclusive. */
  readonly endAt?: number;
  /** How many ticks there are at most. */
  readonly limit?: number;
  readonly except?: readonly (string | Span)[];
  /** How many milliseconds a tick is delayed at most, by a hash of name and tick. */
  readonly jitter?: number;
  /** How many milliseconds all ticks are delayed at most, by a hash of the name. */
  readonly spread?: number;
  readonly misfire: Misfire;
  /** For how many milliseconds a tick may be late with `misfire: "skip"`. */
  readonly misfireGrace: number;
  /** How many late ticks come with `misfire: "all"`. */
  readonly maxCatchUp: number;
  readonly overlap: Overlap;
  /** The lane of the messages, see `flow`; undefined for the one without a name. */
  readonly lane?: string;
  /** Their priority in it; undefined for 0. */
  readonly priority?: number;
}

/** What happens to ticks whose messages were not planned or moved in time. */
export type Misfire = "once" | "all" | "skip";

/** What happens to a run that is due while another one is ready or in flight. */
export type Overlap = "allow" | "skip" | "wait";

/** From `from` on, before `to` (epoch ms). */
export interface Span {
  readonly from: number;
  readonly to: number;
}
