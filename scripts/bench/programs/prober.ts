import { Redis } from "ioredis";
import { ReferenceClock } from "../reference-clock.ts";
import { serve } from "./serve.ts";

/** PINGs with replies. */
export interface Pings {
  /** When each was sent, by the reference clock in epoch milliseconds. */
  readonly sentAt: Float64Array;
  /** The duration of each, in milliseconds. */
  readonly waits: Float64Array;
}

/** Sends a PING every millisecond, whether or not earlier ones have their replies. */
class Prober {
  readonly #redis: Redis;
  readonly #clock: ReferenceClock;
  readonly #interval: NodeJS.Timeout;
  readonly #sentAt: number[] = [];
  readonly #waits: number[] = [];

  constructor(redis: Redis, clock: ReferenceClock) {
    this.#redis = redis;
    this.#clock = clock;
    this.#interval = setInterval(() => void this.#ping(), 1);
  }

  async stop(): Promise<Pings> {
    clearInterval(this.#interval);
    // The last reply; all earlier ones have arrived by then.
    await this.#redis.quit();
    return { sentAt: Float64Array.from(this.#sentAt), waits: Float64Array.from(this.#waits) };
  }

  async #ping(): Promise<void> {
    const sentAt = this.#clock.now();
    await this.#redis.ping();
    this.#sentAt.push(sentAt);
    this.#waits.push(this.#clock.now() - sentAt);
  }
}

let prober: Prober;

const methods = {
  async start(url: string): Promise<void> {
    const redis = new Redis(url);
    await redis.ping();
    prober = new Prober(redis, await ReferenceClock.of(url));
  },
  stop: () => prober.stop(),
};

/** The methods of the program. */
export type ProberMethods = typeof methods;

serve(methods);
