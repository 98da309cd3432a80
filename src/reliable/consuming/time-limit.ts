import { TimeLimitError } from "../../errors.ts";
import { checkDuration } from "../../queue/checks.ts";
import { DeadlineTimer } from "../../time/deadline-timer.ts";
import { queueTime } from "../../time/runtime.ts";

/** How long a handler of a reliable queue may run. */
export interface TimeLimitOptions {
  /**
   * How long the handler may run, in milliseconds. After that the `signal` of its deliveries is aborted with a `TimeLimitError`. A
   * handler that then throws has failed, as with any error; one that returns has succeeded. A handler that does neither within
   * `grace` is given up: the attempt has failed, the next message takes its place, and it can no longer settle anything. A handler
   * that blocks its process cannot be stopped. Costs a timer for each call. Defaults to no limit: while the process lives, no other
   * consumer gets the message.
   */
  readonly timeLimit?: number;
  /** How long a handler may take to end once its time limit is over, in milliseconds. Defaults to 5000. */
  readonly grace?: number;
}

/** The time that each call of a handler has (ms). */
export interface TimeLimit {
  readonly limit: number;
  readonly grace: number;
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal. */
export function checkTimeLimit({ timeLimit, grace }: TimeLimitOptions): TimeLimit | undefined {
  if (grace !== undefined) checkDuration("grace", grace);
  if (timeLimit === undefined) {
    if (grace !== undefined) throw new TypeError("grace must come with a timeLimit");
    return undefined;
  }
  checkDuration("timeLimit", timeLimit, { endless: "leave it out" });
  if (timeLimit === 0) throw new RangeError("timeLimit must be above 0, got 0");
  return { limit: timeLimit, grace: grace ?? GRACE };
}

/** What a {@link LimitedCall} does. Each is called once at most. */
interface LimitedCallHost {
  /** The time limit is over. */
  readonly onOver: (error: TimeLimitError) => void;
  /** The grace is over as well. The call is done when this resolves. Never rejects. */
  readonly onStuck: (error: TimeLimitError) => Promise<unknown>;
}

/**
 * One call of a handler with a time limit. It is always in exactly one mode:
 *
 * - **running**: its time is not over. The limit passes → *over*. The handler ends → *ended*.
 * - **over**: its signal is aborted, and it has the grace left. That passes → *stuck*. The handler ends → *ended*.
 * - **stuck**: it was given up, and may still run. What it does counts for nothing.
 * - **ended**: it ended in time, and is settled as any other.
 */
export class LimitedCall {
  readonly #queue: string;
  readonly #time: TimeLimit;
  readonly #host: LimitedCallHost;
  readonly #timer = new DeadlineTimer(() => this.#onDue());
  #mode: "running" | "over" | "stuck" | "ended" = "running";
  #giveUp: ((done: Promise<unknown>) => void) | undefined;

  constructor(queue: string, time: TimeLimit, host: LimitedCallHost) {
    this.#queue = queue;
    this.#time = time;
    this.#host = host;
  }

  /**
   * Resolves when `settled` does, which resolves when the handler has ended and its deliveries are settled; or once the
   * handler is given up. Neither rejects.
   */
  within(startedAt: number, settled: Promise<unknown>): Promise<unknown> {
    this.#timer.reset(startedAt + this.#time.limit);
    return new Promise((resolve) => {
      this.#giveUp = resolve;
      void settled.then(resolve);
    });
  }

  /** The handler has ended. Returns whether it was given up before. */
  onEnded(): boolean {
    this.#timer.clear();
    if (this.#mode === "stuck") return true;
    this.#mode = "ended";
    return false;
  }

  #onDue(): void {
    const { limit, grace } = this.#time;
    if (this.#mode === "running") {
      this.#mode = "over";
      this.#timer.reset(queueTime.now() + grace);
      this.#host.onOver(new TimeLimitError(this.#queue, limit));
    } else {
      this.#mode = "stuck";
      this.#giveUp?.(this.#host.onStuck(new TimeLimitError(this.#queue, limit, grace)));
    }
  }
}

const GRACE = 5000;
