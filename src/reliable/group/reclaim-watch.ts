import { leaseTimeoutOf } from "./consumer-name.ts";

/** A consumer of a group, as Redis knows it. */
export interface ConsumerState {
  readonly name: string;
  /** How many messages it has in flight. */
  readonly inFlight: number;
  /** For how long it has been silent, in milliseconds on the server's clock. */
  readonly idle: number;
}

/** The verdict of one look. */
export interface Look {
  /** Consumers to reclaim from, provided that they are still silent for `idle` milliseconds when that happens. */
  readonly dead: { readonly name: string; readonly idle: number }[];
  /** Milliseconds until the next look. */
  readonly lookIn: number;
}

/**
 * Judges which consumers of a group are dead. It does no I/O: its owner asks Redis, and acts.
 *
 * A live consumer gives a sign of life every third of its lease timeout. One that has messages in flight and was silent
 * for the whole timeout is dead. Redis measures the silence by its own clock, though. If that clock is set forward, all
 * consumers seem silent at once. So a verdict takes **two looks**: the first when the silence has lasted half the
 * timeout, the second when it has lasted the whole timeout and half a timeout has passed since the first look on our
 * monotonic clock. Between the two the silence has to grow as fast as time passes. If it grew less, there was a sign of
 * life, or the clock was set back. If it grew more, the clock was set forward. In both cases the look counts as a new
 * first one.
 *
 * So a dead consumer is found after one timeout, and after a step of the clock half a timeout later. If the clock was
 * set back, the last sign of life lies in the future, and the silence begins when that instant has come.
 *
 * A consumer is judged by the timeout in its own name, or, if its name is foreign, by the timeout of this process.
 */
export class ReclaimWatch {
  readonly #self: string;
  /** Milliseconds. */
  readonly #leaseTimeout: number;
  /** By name, the first look at each consumer that has been silent for half its timeout. */
  #firstLooks = new Map<string, FirstLook>();

  constructor({ leaseTimeout, self }: { leaseTimeout: number; self: string }) {
    this.#leaseTimeout = leaseTimeout;
    this.#self = self;
  }

  /**
   * Judges all consumers of the group at `now` (milliseconds, monotonic), and forgets those that are not listed.
   *
   * A dead consumer is reported at each look until it has nothing in flight. A consumer that had nothing in flight at
   * the last look, and whose timeout is shorter than ours, may be found late: by up to a sixth of our timeout.
   */
  look(consumers: readonly ConsumerState[], now: number): Look {
    const dead: { name: string; idle: number }[] = [];
    const firstLooks = new Map<string, FirstLook>();
    let lookIn = this.#leaseTimeout / 6;
    for (const { name, inFlight, idle } of consumers) {
      if (name === this.#self || inFlight === 0) continue;
      const timeout = leaseTimeoutOf(name) ?? this.#leaseTimeout;
      const half = timeout / 2;
      if (idle < half) {
        lookIn = Math.min(lookIn, half - idle);
        continue;
      }
      const known = this.#firstLooks.get(name);
      const first = known && isSilent(known, idle, now, timeout) ? known : { at: now, idle };
      firstLooks.set(name, first);
      const remaining = Math.max(timeout - idle, first.at + half - now);
      if (remaining <= 0) dead.push({ name, idle });
      else lookIn = Math.min(lookIn, remaining);
    }
    this.#firstLooks = firstLooks;
    return { dead, lookIn: Math.max(lookIn, MIN_PAUSE) };
  }
}

interface FirstLook {
  /** Milliseconds, monotonic. */
  readonly at: number;
  readonly idle: number;
}

/** Whether a consumer has been silent since the first look, as far as two clocks can tell. */
function isSilent(first: FirstLook, idle: number, now: number, timeout: number): boolean {
  // A tenth of the time between the two looks, and 50 ms at least: a reply may take that long.
  const tolerance = Math.max(timeout / 20, 50);
  return Math.abs(idle - first.idle - (now - first.at)) <= tolerance;
}

/** The shortest interval between two looks (ms), so that many dead consumers cause no storm of looks. */
const MIN_PAUSE = 50;
