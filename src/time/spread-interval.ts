/**
 * Calls somebody again and again. Each interval is up to a fifth longer or shorter than was asked for, so
 * that many processes that were started at once do not act at once.
 */
export class SpreadInterval {
  readonly #onTurn: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onTurn: () => void) {
    this.#onTurn = onTurn;
  }

  /** Begins anew, with this interval (milliseconds). */
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

  clear(): void {
    clearTimeout(this.#timer);
  }
}
