import { SpreadInterval } from "../../time/spread-interval.ts";

/** Milliseconds between two sweeps, on average; `deaf`: while wake-ups get lost. */
export interface Sweeps {
  readonly ordinary: number;
  readonly deaf: number;
}

/** Whether a task looks after its queue: nobody else does, others do as well, or others do instead. */
export type Duty = "alone" | "shared" | "off";

/**
 * How often a transfer task sweeps though nobody has called it: every half minute if it is alone on duty, twice as
 * seldom if it shares the duty or is off duty, and every second while it is deaf.
 */
export class SweepRhythm {
  readonly #timer: SpreadInterval;
  readonly #sweeps: Sweeps;
  #isDeaf = false;
  #duty: Duty = "alone";
  #isClosed = false;

  constructor(onTurn: () => void, sweeps: Sweeps = SWEEPS) {
    this.#timer = new SpreadInterval(onTurn);
    this.#sweeps = sweeps;
    this.#arm();
  }

  /** Whether wake-ups seem to get lost. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  get isOnDuty(): boolean {
    return this.#duty !== "off";
  }

  /** A task off duty knows of no deadline, and so it cannot tell that it is deaf. */
  setDeaf(isDeaf: boolean): void {
    if (isDeaf === this.#isDeaf || (isDeaf && !this.isOnDuty)) return;
    this.#isDeaf = isDeaf;
    this.#arm();
  }

  setDuty(duty: Duty): void {
    if (duty === this.#duty) return;
    this.#duty = duty;
    if (duty === "off") this.#isDeaf = false;
    this.#arm();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer.clear();
  }

  #arm(): void {
    if (this.#isClosed) return;
    const { ordinary, deaf } = this.#sweeps;
    if (this.#isDeaf) this.#timer.reset(deaf);
    else this.#timer.reset(this.#duty === "alone" ? ordinary : ordinary * 2);
  }
}

const SWEEPS: Sweeps = { ordinary: 30_000, deaf: 1000 };
