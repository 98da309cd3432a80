import { spread } from "../../time/spread.ts";
import type { Steps } from "../../time/steps.ts";
import { queueTime } from "../../time/runtime.ts";

/** The intervals between two sweeps, in milliseconds. */
export interface Sweeps {
  readonly ordinary: number;
  /** While wake-ups get lost; on average. */
  readonly deaf: number;
}

/** Whether a task looks after its queue: it alone, together with others, or only others do. */
export type Duty = "alone" | "shared" | "off";

/**
 * Calls a transfer task to sweep at intervals: every half minute if it is alone on duty, every minute if it shares the
 * duty or is off duty, and every second while it is deaf. The tasks of a process sweep at the same instants, in one
 * command.
 */
export class SweepRhythm {
  readonly #onTurn: () => void;
  readonly #steps: Steps;
  readonly #sweeps: Sweeps;
  #timer: NodeJS.Timeout | undefined;
  #isDeaf = false;
  #duty: Duty = "alone";
  #isClosed = false;

  constructor(onTurn: () => void, steps: Steps, sweeps: Sweeps = SWEEPS) {
    this.#onTurn = onTurn;
    this.#steps = steps;
    this.#sweeps = sweeps;
    this.#arm();
  }

  /** Whether wake-ups seem to get lost. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  /** Whether the task looks after its queue, alone or with others. */
  get isOnDuty(): boolean {
    return this.#duty !== "off";
  }

  /** Sets whether the task is deaf. Off duty, a task tracks no deadlines, so it cannot notice that it is deaf. */
  setDeaf(isDeaf: boolean): void {
    if (isDeaf === this.#isDeaf || (isDeaf && !this.isOnDuty)) return;
    this.#isDeaf = isDeaf;
    this.#arm();
  }

  /** Sets the duty. A task that goes off duty is no longer deaf. */
  setDuty(duty: Duty): void {
    if (duty === this.#duty) return;
    this.#duty = duty;
    if (duty === "off") this.#isDeaf = false;
    this.#arm();
  }

  /** Stops for good. */
  close(): void {
    this.#isClosed = true;
    queueTime.clearTimeout(this.#timer);
  }

  #arm(): void {
    if (this.#isClosed) return;
    const { ordinary, deaf } = this.#sweeps;
    const asAgreed = this.#duty === "alone" ? ordinary : ordinary * 2;
    queueTime.clearTimeout(this.#timer);
    this.#timer = queueTime.setTimeout(
      () => {
        this.#arm();
        this.#onTurn();
      },
      this.#isDeaf ? spread(deaf) : this.#steps.until(asAgreed),
      this,
    );
  }
}

const SWEEPS: Sweeps = { ordinary: 30_000, deaf: 1000 };
