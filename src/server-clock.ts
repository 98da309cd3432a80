/**
 * An estimate of the Redis server's clock, in microseconds since the epoch.
 *
 * Only the server's clock decides what is due, and scripts read it themselves. This estimate serves
 * where a hint is enough: the order stamp of an id, and the remaining time until a deadline that
 * was heard on the channel.
 *
 * Every answer that carries the server's time bounds the offset between the two clocks: the server
 * read its clock after the question was sent and before the answer was received. The estimate is
 * moved into those bounds, and no further, so a slow answer does no harm and a step of the server's
 * clock is followed at once.
 */
export class ServerClock {
  #offset: number | undefined;
  #lastStamp = 0;

  /** Whether the server has been heard yet. */
  get isSet(): boolean {
    return this.#offset !== undefined;
  }

  /** This process's monotonic clock in microseconds, for `sentAt` below. */
  static local(): number {
    return performance.now() * 1000;
  }

  /** Takes into account that the server said `serverTime` between `sentAt` and now. */
  observe(serverTime: number, sentAt: number): void {
    const earliest = serverTime - ServerClock.local();
    const latest = serverTime - sentAt;
    this.#offset =
      this.#offset === undefined
        ? (earliest + latest) / 2
        : Math.min(Math.max(this.#offset, earliest), latest);
  }

  /** Asks the server, with a function that sends TIME. */
  async ask(time: () => Promise<readonly (number | string)[]>): Promise<void> {
    const sentAt = ServerClock.local();
    const [seconds, micros] = await time();
    this.observe(Number(seconds) * 1e6 + Number(micros), sentAt);
  }

  /** The estimated server time in microseconds. Only after the first {@link observe}. */
  now(): number {
    return ServerClock.local() + (this.#offset ?? NaN);
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
}
