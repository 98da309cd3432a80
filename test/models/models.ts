/** A promise that a model breaks if one thing is changed. */
export interface Mutant {
  /** The value of the constant `Mutant`. */
  readonly mutant: string;
  /** The invariant or property that no longer holds. */
  readonly breaks: string;
  /** The configuration in which that shows. Defaults to the model's first one. */
  readonly configuration?: string;
  /** It shows in another way, too: only `npm run soak` looks for this one, which takes long. */
  readonly isLong?: boolean;
}

/** A promise that does not hold without its limits. */
export interface Limit {
  /** The promise without them. */
  readonly promise: string;
  /** Defaults to the model's first one. */
  readonly configuration?: string;
}

/** A model in docs/project/models. */
export interface Model {
  readonly name: string;
  /** The files with its constants, and with what TLC checks. */
  readonly configurations: readonly [string, ...string[]];
  /** Further ones, which take so long that only `npm run soak` checks them. */
  readonly more?: readonly string[];
  readonly mutants: readonly Mutant[];
  readonly limits: readonly Limit[];
}

/** Every model, with all that TLC has to find in it. */
export const ALL_MODELS: readonly Model[] = [
  {
    name: "Offers",
    configurations: ["Offers"],
    more: ["Offers.taking"],
    mutants: [
      { mutant: "id per copy", breaks: "StoredOnce" },
      { mutant: "own clock", breaks: "NeverEarly" },
      { mutant: "index is trusted", breaks: "CancelIsExact" },
      { mutant: "cancel is sent again", breaks: "CancelIsExact" },
      { mutant: "transfer in two commands", breaks: "MovedOnce" },
      { mutant: "no receipt", breaks: "TakenOnce", configuration: "Offers.taking" },
    ],
    limits: [
      { promise: "StoredOnceAlways" },
      { promise: "CancelIsExactAlways" },
      { promise: "RejectedIsNotStoredAlways" },
      { promise: "TakenOnceAlways", configuration: "Offers.taking" },
    ],
  },
  {
    name: "Leases",
    configurations: ["Leases"],
    mutants: [
      { mutant: "one look", breaks: "LeaseIsKept" },
      { mutant: "no second check", breaks: "LeaseIsKept" },
      { mutant: "settled by message", breaks: "OnePlace" },
      { mutant: "death is not counted", breaks: "AttemptsAreExact" },
      { mutant: "strangers at once", breaks: "HeldIsInFlight" },
      { mutant: "strangers stay", breaks: "IsSettled" },
    ],
    limits: [{ promise: "LeaseIsKeptAlways" }, { promise: "HeldIsInFlightAlways" }],
  },
  {
    name: "Migration",
    configurations: ["Migration"],
    more: ["Migration.offer", "Migration.fewer"],
    mutants: [
      { mutant: "no receipt", breaks: "OnePlace" },
      { mutant: "drop before push", breaks: "NothingIsLost" },
      {
        mutant: "open batch is overwritten",
        breaks: "NothingIsLost",
        configuration: "Migration.offer",
      },
      { mutant: "new, then old", breaks: "CancelIsExact" },
      { mutant: "no guard", breaks: "AtHome", configuration: "Migration.offer" },
      { mutant: "numbers are counted", breaks: "NothingIsLost", configuration: "Migration.offer" },
      { mutant: "sent again at once", breaks: "StoredOnce", configuration: "Migration.offer" },
      { mutant: "nobody goes on", breaks: "ChangeEnds", configuration: "Migration.fewer" },
    ],
    limits: [],
  },
  {
    name: "Exclusive",
    configurations: ["Exclusive", "Exclusive.alive", "Exclusive.paused"],
    more: ["Exclusive.change", "Exclusive.stall", "Exclusive.changers"],
    mutants: [
      { mutant: "no kill", breaks: "InOrder" },
      { mutant: "waiting counts", breaks: "AttemptsAreExact" },
      { mutant: "pause in the process", breaks: "PauseIsKept" },
      { mutant: "unread first", breaks: "InOrder", configuration: "Exclusive.change" },
      { mutant: "fences are not raised", breaks: "FencesGrow", configuration: "Exclusive.change" },
      {
        mutant: "holding only if seen",
        breaks: "OneHandlerPerKey",
        configuration: "Exclusive.change",
      },
      { mutant: "idle notes", breaks: "CallsEnd", configuration: "Exclusive.both", isLong: true },
      { mutant: "idle notes", breaks: "ChangeEnds", configuration: "Exclusive.paused" },
      { mutant: "nobody goes on", breaks: "ChangeEnds", configuration: "Exclusive.changers" },
    ],
    limits: [],
  },
];
