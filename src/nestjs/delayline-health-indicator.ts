import { setMaxListeners } from "node:events";
import type { Delayline } from "../client/delayline.ts";
import { checkOptions, checkWhole } from "../queue/checks.ts";

/** Options of `DelaylineHealthIndicator.check`. */
export interface HealthCheckOptions {
  /** How long Redis may take to reply, in milliseconds: 1 to 60,000. Defaults to 1,000. */
  readonly timeout?: number;
}

// Not an interface: what has an index signature takes only a type.
/** How the queues are that the client has open. */
export type DelaylineHealth = {
  /** `"up"`: Redis has told the numbers of all of them. */
  status: "up" | "down";
  /** What failed first. */
  message?: string;
  /** The numbers of each queue that replied, by its name. */
  queues: Record<string, QueueHealth>;
};

type QueueHealth = {
  delayed: number;
  /** For how long the earliest message has been due without being moved (ms). */
  overdueFor: number;
  ready: number;
  dead: number;
  quarantined: number;
  isPaused: boolean;
};

/**
 * Tells whether Redis replies, and how many messages are where; as `@nestjs/terminus` 11 expects it, which is not needed.
 *
 * A backlog is no reason to be down: a process that is restarted for it makes it longer.
 */
export class DelaylineHealthIndicator {
  readonly #line: Delayline;

  constructor(line: Delayline) {
    this.#line = line;
  }

  /**
   * Asks Redis for the numbers of the queues that are open. Never rejects for what Redis does: then the status is
   * `"down"`.
   *
   * @param key under which the result stands.
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
    const overdueFor = Math.max(0, serverTime - (stats.nextDeadline ?? Infinity));
    return { delayed, overdueFor: Math.round(overdueFor), ready, dead, quarantined, isPaused };
  }
}
