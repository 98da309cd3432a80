import { networkTime, nextTick, queueTime, serverStandIn } from "./runtime.ts";

/**
 * An estimate of the Redis server's clock, in milliseconds since the epoch, with fractions.
 *
 * One clock: the estimate decides nothing. It serves for the order stamp of an id, and for the instant at which a timer
 * should fire. {@link past} is no estimate, but a bound.
 *
 * Every reply that carries the server's time bounds the offset between the two clocks: the server read its clock after
 * the command was sent and before the reply was received. Intersecting all bounds soon leaves an interval as narrow as
 * the fastest round trip; the estimate is its midpoint. The bounds widen with time, since clocks drift. A reply that
 * contradicts the bounds replaces them: the server's clock was set, or this is another server.
 */
export class ServerClock {
  /** Bounds of the offset to `queueTime.now()`, as of the instant `boundedAt`. */
  #least = -Infinity;
  #most = Infinity;
  #boundedAt = 0;
  /** When a server's time was last observed, on the network's time. */
  #observedAt = -Infinity;
  #lastStamp = 0;
  #asking: Promise<void> | undefined;
  readonly #onStep = new Set<() => void>();
  /** What some replies have shown, for {@link past}: the least offset, and when it was observed. The oldest first. */
  readonly #marks: { readonly least: number; readonly at: number }[] = [];

  /** Whether a server's time has been observed yet. */
  get isSet(): boolean {
    return this.#most !== Infinity;
  }

  /** Milliseconds since the server's time was last observed. */
  get age(): number {
    return networkTime.now() - this.#observedAt;
  }

  /** The instant (epoch ms) in a reply to TIME. */
  static fromTime([seconds, micros]: readonly (number | string)[]): number {
    return Number(seconds) * 1000 + Number(micros) / 1000;
  }

  /**
   * Calls `listener` whenever a reply shows that the server's clock was set. Returns a function that stops this.
   */
  onStep(listener: () => void): () => void {
    this.#onStep.add(listener);
    return () => void this.#onStep.delete(listener);
  }

  /**
   * Narrows the bounds: the server read `serverTime` (epoch ms) from its clock between `sentAt` (`queueTime.now()`)
   * and now.
   */
  observe(serverTime: number, sentAt: number): void {
    const now = queueTime.now();
    const drift = driftIn(now - this.#boundedAt);
    const least = serverTime - now;
    const most = serverTime - sentAt;
    this.#least = Math.max(this.#least - drift, least);
    this.#most = Math.min(this.#most + drift, most);
    this.#boundedAt = now;
    this.#observedAt = networkTime.now();
    this.#mark(least, now);
    const contradiction = this.#least - this.#most;
    if (contradiction > 0) {
      this.#least = least;
      this.#most = most;
      if (contradiction > STEP) for (const listener of this.#onStep) listener();
    }
  }

  /**
   * Returns undefined once the clock is set. Until then, calls `ask` for the server's time (epoch ms), and returns a
   * promise that resolves once the clock is set. Later callers get the same promise, and so keep their order.
   */
  ready(ask: () => Promise<number>): Promise<void> | undefined {
    if (this.#asking === undefined && !this.isSet) {
      const end = () => (this.#asking = undefined);
      // In the next tick: until the callers that waited have continued, a new caller has to wait behind them.
      this.#asking = this.#ask(ask).then(() => {
        nextTick(end);
      });
      this.#asking.catch(end);
    }
    return this.#asking;
  }

  /** Returns the estimated server time (epoch ms). Must not be called before the first {@link observe}. */
  now(): number {
    return queueTime.now() + (this.#least + this.#most) / 2;
  }

  /**
   * Returns the next order stamp: the estimated time in microseconds, or one more than the last stamp if that is later.
   */
  nextStamp(): number {
    const stamp = Math.max(Math.floor(this.now() * 1000), this.#lastStamp + 1);
    // While time stands still, it would not tell the stamps of several clients apart.
    this.#lastStamp = serverStandIn()?.stamp?.(stamp) ?? stamp;
    return this.#lastStamp;
  }

  /**
   * What the server's clock shows now (epoch ms), or a little less, as it ran {@link PAST} milliseconds ago: a step since
   * then does not change it. Undefined if no reply is so old.
   */
  get past(): number | undefined {
    const now = queueTime.now();
    const mark = this.#marks.findLast(({ at }) => now - at >= PAST);
    if (mark === undefined) return undefined;
    return now + mark.least - driftIn(now - mark.at);
  }

  #mark(least: number, now: number): void {
    const last = this.#marks.at(-1)?.at ?? -Infinity;
    if (now - last < PAST / 5) return;
    this.#marks.push({ least, at: now });
    while (now - (this.#marks[1]?.at ?? now) >= PAST) this.#marks.shift();
  }

  /** Returns how many milliseconds remain until `deadline` (epoch ms) on the server's clock. */
  remaining(deadline: number): number {
    return deadline - this.now();
  }

  async #ask(ask: () => Promise<number>): Promise<void> {
    // Ask twice: the first round trip may include the time to connect.
    for (let i = 0; i < 2; i++) {
      const sentAt = queueTime.now();
      this.observe(await ask(), sentAt);
    }
  }
}

/**
 * Returns the instant (epoch ms) that a server's clock shows.
 *
 * Rejects with ioredis's errors.
 */
export async function askTime(client: {
  time(): Promise<readonly (number | string)[]>;
}): Promise<number> {
  const time = await client.time();
  return serverStandIn()?.now?.(client) ?? ServerClock.fromTime(time);
}

/** How far two clocks may drift apart in so many milliseconds. Time that a test turns is the server's time, too. */
function driftIn(duration: number): number {
  return queueTime.isExact === true ? 0 : duration * MAX_DRIFT;
}

/** Milliseconds, see {@link ServerClock.past}. */
export const PAST = 2500;

/** How far two clocks may drift apart: 100 microseconds per second, which is more than quartz drifts. */
const MAX_DRIFT = 1e-4;

/** A contradiction of more than this many milliseconds counts as a step of the server's clock. */
const STEP = 1;
