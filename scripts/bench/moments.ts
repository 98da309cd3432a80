import type { Redis } from "ioredis";
import { numberOf } from "./payload.ts";

/**
 * When the server added each message to the delayed ones, and when it made it ready, by its own clock (epoch ms), with
 * `MONITOR`. The index is the number that the payload begins with.
 */
export class Moments {
  readonly delayedAt: number[] = [];
  readonly readyAt: number[] = [];
  readonly #monitor: Redis;

  private constructor(monitor: Redis) {
    this.#monitor = monitor;
    // ioredis may mistake a line that arrives together with others for a reply. That moment is not known.
    monitor.on("error", () => {});
    monitor.on("monitor", (time: string, [command = "", key = "", ...args]: string[]) => {
      const moments = this.#momentsOf(command.toLowerCase(), key);
      if (moments === undefined) return;
      for (const arg of args) {
        const at = arg.search(/\d+ a payload/);
        if (at >= 0) moments[numberOf(arg.slice(at))] = Number(time) * 1000;
      }
    });
  }

  static async start(redis: Redis): Promise<Moments> {
    return new Moments(await redis.monitor());
  }

  end(): void {
    this.#monitor.disconnect();
  }

  #momentsOf(command: string, key: string): number[] | undefined {
    if (command === "zadd" && key.startsWith("redisson_delay_queue_timeout")) return this.delayedAt;
    return command === "rpush" && key === "orders" ? this.readyAt : undefined;
  }
}
