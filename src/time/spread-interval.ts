/**
 * An interval timer whose every interval is up to a fifth longer or shorter than asked for, so that processes that
 * started together do not act together.
 */
export class SpreadInterval {
  readonly #onTurn: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onTurn: () => void) {
    this.#onTurn = onTurn;
  }

  /** Restarts the timer with this interval (milliseconds). */
  reset(interval: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => {
        this.reset(interval);
        this.#onTurn();
      },
      interval * (0.8 + 0.4 * Math.random()),
    );
  }

  /** Stops the timer. */
  clear(): void {
    clearTimeout(this.#timer);
  }
}
