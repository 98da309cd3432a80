/**
 * An estimate of the Redis server's clock, in milliseconds since the epoch, with fractions.
 *
 * Only the server's clock decides what is due, and scripts read it themselves. This estimate serves
 * where a hint is enough: the order stamp of an id, and the instant at which a timer is to fire.
 *
 * Every reply that carries the server's time bounds the offset between the two clocks: the server
 * read its clock after the command was sent and before the reply was received. Intersecting all
 * bounds soon leaves an interval as narrow as the fastest round trip; the estimate is its midpoint.
 * The bounds widen with time, since clocks drift. A reply that contradicts them starts anew: the
 * server's clock was set, or this is another server.
 */
export class ServerClock {
  /** Bounds of the offset, as of the local instant `boundedAt`. */
  #least = -Infinity;
  #most = Infinity;
  #boundedAt = 0;
  #lastStamp = 0;
  #asking: Promise<void> | undefined;
  readonly #onStep = new Set<() => void>();

  /** Whether the server has been heard yet. */
  get isSet(): boolean {
    return this.#most !== Infinity;
  }

  /** The instant (epoch ms) that a reply to TIME stands for. */
  static fromTime([seconds, micros]: readonly (number | string)[]): number {
    return Number(seconds) * 1000 + Number(micros) / 1000;
  }

  /**
   * Calls `listener` whenever the server's clock turns out to have been set to another time, until the function
   * that is returned is called.
   */
  onStep(listener: () => void): () => void {
    this.#onStep.add(listener);
    return () => void this.#onStep.delete(listener);
  }

  /**
   * Takes into account that the server read `serverTime` (epoch ms) from its clock between `sentAt`
   * (`performance.now()`) and now.
   */
  observe(serverTime: number, sentAt: number): void {
    const now = performance.now();
    const drift = (now - this.#boundedAt) * MAX_DRIFT;
    const least = serverTime - now;
    const most = serverTime - sentAt;
    this.#least = Math.max(this.#least - drift, least);
    this.#most = Math.min(this.#most + drift, most);
    this.#boundedAt = now;
    const contradiction = this.#least - this.#most;
    if (contradiction > 0) {
      this.#least = least;
      this.#most = most;
      if (contradiction > STEP) for (const listener of this.#onStep) listener();
    }
  }

  /**
   * Returns undefined if the server has been heard. If it has not, asks it for its time (epoch ms), and returns a
   * promise for that. All who come meanwhile wait for the same promise, and so keep their order.
   */
  ready(ask: () => Promise<number>): Promise<void> | undefined {
    if (this.#asking === undefined && !this.isSet) {
      const end = () => (this.#asking = undefined);
      // Not at once: whoever comes before those who waited have gone on has to wait behind them.
      this.#asking = this.#ask(ask).then(() => {
        process.nextTick(end);
      });
      this.#asking.catch(end);
    }
    return this.#asking;
  }

  /** The estimated server time (epoch ms). Only after the first {@link observe}. */
  now(): number {
    return performance.now() + (this.#least + this.#most) / 2;
  }

  /** The next order stamp: the estimated time in microseconds, but greater than every stamp before it. */
  nextStamp(): number {
    this.#lastStamp = Math.max(Math.floor(this.now() * 1000), this.#lastStamp + 1);
    return this.#lastStamp;
  }

  /** How many milliseconds remain until `deadline` (epoch ms) on the server's clock. */
  remaining(deadline: number): number {
    return deadline - this.now();
  }

  async #ask(ask: () => Promise<number>): Promise<void> {
    // Twice: the first reply may have waited for the connection.
    for (let i = 0; i < 2; i++) {
      const sentAt = performance.now();
      this.observe(await ask(), sentAt);
    }
  }
}

/** How much two clocks may drift apart: 100 microseconds a second, more than quartz does. */
const MAX_DRIFT = 1e-4;

/** A contradiction of more than this many milliseconds means that the server's clock was set. */
const STEP = 1;
