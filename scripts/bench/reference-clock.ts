import { Redis } from "ioredis";

/**
 * The Redis server's clock as a process sees it, found without the measured library.
 *
 * It asks the server for its TIME many times, and keeps the fastest reply. The server read its clock within that round
 * trip, so the offset to this process's monotonic clock is known to half of it, some 30 microseconds on the loopback.
 * After that the monotonic clock runs on by itself.
 */
export class ReferenceClock {
  readonly #offset: number;
  /** The greatest possible error, in milliseconds. */
  readonly uncertainty: number;

  private constructor(offset: number, uncertainty: number) {
    this.#offset = offset;
    this.uncertainty = uncertainty;
  }

  static async of(url: string): Promise<ReferenceClock> {
    const redis = new Redis(url);
    let fastest = { offset: NaN, roundTrip: Infinity };
    for (let i = 0; i < 200; i++) {
      const sentAt = performance.now();
      const [seconds, micros] = await redis.time();
      const roundTrip = performance.now() - sentAt;
      const offset = Number(seconds) * 1000 + Number(micros) / 1000 - sentAt - roundTrip / 2;
      if (roundTrip < fastest.roundTrip) fastest = { offset, roundTrip };
    }
    redis.disconnect();
    return new ReferenceClock(fastest.offset, fastest.roundTrip / 2);
  }

  /** The server's time in epoch milliseconds, with fractions. */
  now(): number {
    return performance.now() + this.#offset;
  }
}
