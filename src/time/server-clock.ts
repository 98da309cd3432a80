/**
 * An estimate of the Redis server's clock, in microseconds since the epoch.
 *
 * Only the server's clock decides what is due, and scripts read it themselves. This estimate serves
 * where a hint is enough: the order stamp of an id, and the instant at which a timer is to fire.
 *
 * Every answer that carries the server's time bounds the offset between the two clocks: the server
 * read its clock after the question was sent and before the answer was received. What all answers
 * leave possible soon is as narrow as the fastest round trip; the estimate is its middle. The bounds
 * widen with time, since clocks drift, and an answer that contradicts them (the server's clock was
 * set, or it is another server) starts anew.
 */
export class ServerClock {
  /** Bounds of the offset in microseconds, as of the local instant `boundedAt`. */
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

  /** This process's monotonic clock in microseconds, for `sentAt` below. */
  static local(): number {
    return performance.now() * 1000;
  }

  /** The microseconds that a reply to TIME stands for. */
  static fromTime([seconds, micros]: readonly (number | string)[]): number {
    return Number(seconds) * 1e6 + Number(micros);
  }

  /** Calls `listener` whenever the server's clock turns out to have been set to another time. */
  onStep(listener: () => void): void {
    this.#onStep.add(listener);
  }

  /** Takes into account that the server said `serverTime` between `sentAt` and now. */
  observe(serverTime: number, sentAt: number): void {
    const now = ServerClock.local();
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
   * Undefined if the server has been heard. If it has not, asks it, with a function that sends TIME,
   * and answers a promise for that; all who come meanwhile wait for the same, and so keep their order.
   */
  ready(time: () => Promise<readonly (number | string)[]>): Promise<void> | undefined {
    if (this.#asking === undefined && !this.isSet) {
      const end = () => (this.#asking = undefined);
      // Not at once: whoever comes before those who waited have gone on has to wait behind them.
      this.#asking = this.#ask(time).then(() => {
        process.nextTick(end);
      });
      this.#asking.catch(end);
    }
    return this.#asking;
  }

  /** The estimated server time in microseconds. Only after the first {@link observe}. */
  now(): number {
    return ServerClock.local() + (this.#least + this.#most) / 2;
  }

  /** The next order stamp: the estimated time, but greater than every stamp before it. */
  nextStamp(): number {
    this.#lastStamp = Math.max(Math.floor(this.now()), this.#lastStamp + 1);
    return this.#lastStamp;
  }

  /** How many milliseconds remain until `deadline` (epoch ms) on the server's clock. */
  remaining(deadline: number): number {
    return deadline - this.now() / 1000;
  }

  async #ask(time: () => Promise<readonly (number | string)[]>): Promise<void> {
    // Twice: the first answer may have waited for the connection.
    for (let i = 0; i < 2; i++) {
      const sentAt = ServerClock.local();
      this.observe(ServerClock.fromTime(await time()), sentAt);
    }
  }
}

/** How much two clocks may drift apart: 100 microseconds a second, more than quartz does. */
const MAX_DRIFT = 1e-4;

/** A contradiction of more than this many microseconds means that the server's clock was set. */
const STEP = 1000;
