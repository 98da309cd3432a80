import { HeldShare, type Consume } from "./held-share.ts";
import type { Parts } from "../parts/parts.ts";

/** Exclusive consumption of a queue in partitions by this client, which does it once at a time. */
export class Exclusive {
  readonly #parts: Parts;
  #isRunning = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @throws {TypeError} if this client does so already. */
  check(): void {
    if (!this.#isRunning) return;
    throw new TypeError(
      `queue "${this.#parts.name}" is exclusive: a client may subscribe to it once, and has`,
    );
  }

  /** What is said to whoever wants messages in another way. */
  get refusal(): TypeError {
    return new TypeError(
      `queue "${this.#parts.name}" is exclusive: only subscribe takes messages from it`,
    );
  }

  /**
   * Has each partition consumed that this process comes to hold, for a `group` if the queue is reliable; resolves when
   * `stopping` is aborted, and nothing is held any more.
   */
  async run(consume: Consume, stopping: AbortSignal, group?: string): Promise<void> {
    this.check();
    this.#isRunning = true;
    const { troubles } = this.#parts.first.server;
    const work = { takes: troubles.work(), renewals: troubles.work() };
    const share = new HeldShare(this.#parts, { consume, group, work });
    await new Promise<void>((resolve) => {
      if (stopping.aborted) resolve();
      else stopping.addEventListener("abort", () => resolve(), { once: true });
    });
    await share.end();
    for (const ended of [work.takes, work.renewals]) ended.ended();
    this.#isRunning = false;
  }
}
