import { visibilityTimeoutOf } from "./consumer-name.ts";

/** A consumer of a group, as Redis knows it. */
export interface ConsumerState {
  readonly name: string;
  /** How many messages it has in flight. */
  readonly inFlight: number;
  /** For how long it has been silent, in milliseconds of the server's clock. */
  readonly idle: number;
}

/** What a look has found. */
export interface Look {
  /**
   * Consumers whose messages are to be taken from them, provided that they are still silent for `idle`
   * milliseconds at that moment.
   */
  readonly dead: { readonly name: string; readonly idle: number }[];
  /** In how many milliseconds to look again. */
  readonly lookIn: number;
}

/**
 * Finds out which consumers of a group are dead. It only judges: somebody else looks, and acts.
 *
 * A consumer that lives gives a sign of life every third of its visibility timeout. One that has messages in
 * flight, and was silent for the whole timeout, is dead; but its silence is measured by the server's clock,
 * which may be set forward at any moment, and then all are silent. So it takes **two looks**: the first when the
 * silence has lasted half the timeout, the second when it has lasted the whole, and at least half a timeout
 * after the first on our own monotonic clock. In between the silence has to grow as time passes. If it grows
 * less, there was a sign of life, or the clock was set back; if it grows more, the clock was set forward. Then
 * the first look counts anew.
 *
 * A consumer that dies is found after one timeout; after a step of the clock, half a timeout later. If the clock
 * is set back, what was heard last is in the future, and the silence begins when that has come.
 *
 * The timeout is that of the consumer that is judged, which its name tells. Others, whose names are foreign, are
 * taken to have ours.
 */
export class ReclaimWatch {
  readonly #self: string;
  /** Milliseconds. */
  readonly #visibilityTimeout: number;
  /** By name, the first look at each consumer that has been silent for half its timeout. */
  #firstLooks = new Map<string, FirstLook>();

  constructor({ visibilityTimeout, self }: { visibilityTimeout: number; self: string }) {
    this.#visibilityTimeout = visibilityTimeout;
    this.#self = self;
  }

  /**
   * Judges all consumers of the group, at `now` (milliseconds, monotonic). Those that are not among them any
   * more are forgotten.
   *
   * One that is dead is reported at each look until it has nothing in flight. A consumer whose timeout is
   * shorter than ours, and that had nothing in flight at the last look, may be seen late: by a sixth of our
   * timeout.
   */
  look(consumers: readonly ConsumerState[], now: number): Look {
    const dead: { name: string; idle: number }[] = [];
    const firstLooks = new Map<string, FirstLook>();
    let lookIn = this.#visibilityTimeout / 6;
    for (const { name, inFlight, idle } of consumers) {
      if (name === this.#self || inFlight === 0) continue;
      const timeout = visibilityTimeoutOf(name) ?? this.#visibilityTimeout;
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
    return { dead, lookIn: Math.max(lookIn, LEAST_PAUSE) };
  }
}

interface FirstLook {
  /** Milliseconds, monotonic. */
  readonly at: number;
  readonly idle: number;
}

/** Whether a consumer's silence has gone on since the first look, as far as two clocks can tell. */
function isSilent(first: FirstLook, idle: number, now: number, timeout: number): boolean {
  // A tenth of the time between the two looks. A reply may take that long.
  const tolerance = Math.max(timeout / 20, 50);
  return Math.abs(idle - first.idle - (now - first.at)) <= tolerance;
}

/** Milliseconds from one look to the next, so that many dead consumers cause no storm of looks. */
const LEAST_PAUSE = 50;
