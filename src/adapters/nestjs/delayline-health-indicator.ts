import { setMaxListeners } from "node:events";
import { Inject } from "@nestjs/common";
import type { Delayline } from "../../client/delayline.ts";
import { NUMBERS } from "../../nouns/numbers.ts";
import { checkOptions, checkWhole } from "../../queue/checks.ts";

/** Options of `DelaylineHealthIndicator.check`. */
export interface HealthCheckOptions {
  /** How long Redis may take to reply, in milliseconds: 1 to 60,000. Defaults to 1,000. */
  readonly timeout?: number;
}

// A type, not an interface: only a type is assignable to the index signature that Terminus expects.
/** The health of the queues that the client has open. */
export type DelaylineHealth = {
  /** `"up"` if Redis has returned the numbers of all queues. */
  status: "up" | "down";
  /** The first failure. */
  message?: string;
  /** The numbers of each queue that replied, by its name. */
  queues: Record<string, QueueHealth>;
};

type QueueHealth = {
  delayed: number;
  /** How long the earliest message has been due without being moved (ms). */
  overdueFor: number;
  ready: number;
  dead: number;
  quarantined: number;
  isPaused: boolean;
};

/**
 * Reports whether Redis replies, and the numbers of the open queues. It works as an indicator of `@nestjs/terminus` 11,
 * but does not need that package.
 *
 * A backlog does not make the status `"down"`: restarting a process for it would make it longer.
 */
export class DelaylineHealthIndicator {
  readonly #line: Delayline;

  constructor(line: Delayline) {
    this.#line = line;
  }

  /**
   * Asks Redis for the numbers of the open queues. If Redis fails it does not reject: the status is then `"down"`.
   *
   * @param key the property that holds the result. Defaults to `"delayline"`.
   * @throws {TypeError | RangeError} if an option is not legal.
   */
  async check<const Key extends string = "delayline">(
    key?: Key,
    options: HealthCheckOptions = {},
  ): Promise<Record<Key, DelaylineHealth>> {
    checkOptions("health check option", options, ["timeout"]);
    const { timeout = 1_000 } = options;
    checkWhole("timeout", timeout, 1, 60_000);
    const signal = AbortSignal.timeout(timeout);
    // All queues listen to it; Node warns of more than ten.
    setMaxListeners(0, signal);
    const health: DelaylineHealth = { status: "up", queues: {} };
    const names = [...this.#line.counters.keys()];
    const replies = await Promise.allSettled([
      names.length === 0 ? this.#line.serverTime({ signal }) : undefined,
      ...names.map(async (name) => {
        health.queues[name] = await this.#numbers(name, signal);
      }),
    ]);
    const failed = replies.find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") {
      health.status = "down";
      const isLate = failed.reason === signal.reason;
      health.message = isLate ? `no reply within ${timeout} ms` : String(failed.reason);
    }
    return { [key ?? "delayline"]: health } as Record<Key, DelaylineHealth>;
  }

  async #numbers(name: string, signal: AbortSignal): Promise<QueueHealth> {
    const stats = await this.#line.stats(name, { signal });
    const { delayed, ready, dead, quarantined, isPaused, serverTime } = stats;
    const overdueFor = Math.round(NUMBERS.overdueBy.of(stats, serverTime));
    return { delayed, overdueFor, ready, dead, quarantined, isPaused };
  }
}

/**
 * Injects the health indicator of a connection, or of the one without a name. The class is the token of the latter, so a
 * parameter of type `DelaylineHealthIndicator` needs no decorator where metadata is emitted.
 */
export function InjectDelaylineHealth(connection?: string): ParameterDecorator & PropertyDecorator {
  return Inject(getDelaylineHealthToken(connection));
}

/** The token that {@link InjectDelaylineHealth} injects by. */
export function getDelaylineHealthToken(
  connection?: string,
): typeof DelaylineHealthIndicator | string {
  return connection === undefined
    ? DelaylineHealthIndicator
    : `delayline health of connection "${connection}"`;
}
