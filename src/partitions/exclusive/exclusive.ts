import { ClosedError } from "../../errors.ts";
import type { HeldPartitions, TakeHeld } from "../../reliable/consuming/consuming.ts";
import type { GroupSettings } from "../../reliable/group/group.ts";
import type { Parts } from "../parts/parts.ts";
import { GroupTenure } from "./group-tenure.ts";
import { HeldShare } from "./held-share.ts";

/** This client's exclusive consumption of a partitioned queue. There is one subscription at a time. */
export class Exclusive implements HeldPartitions {
  readonly #parts: Parts;
  #isRunning = false;
  #isClosed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * @throws {TypeError} if this client already consumes the queue.
   * @throws {ClosedError} after {@link close}.
   */
  check(): void {
    if (this.#isClosed) throw new ClosedError(`queue "${this.#parts.name}"`);
    if (!this.#isRunning) return;
    throw new TypeError(
      `queue "${this.#parts.name}" is exclusive: a client may subscribe to it only once, and this one has`,
    );
  }

  /** Refuses subscriptions from now on. */
  close(): void {
    this.#isClosed = true;
  }

  /** The error for calls that take messages in any other way. */
  get refusal(): TypeError {
    return new TypeError(
      `queue "${this.#parts.name}" is exclusive: only subscribe takes messages from it`,
    );
  }

  /**
   * Consumes each partition that this process comes to hold. With `isStrict`, no message overtakes a failed one. Resolves
   * when `stopping` is aborted and every partition is released.
   */
  async run(
    settings: GroupSettings & { readonly isStrict: boolean },
    consume: (take: TakeHeld) => Promise<void>,
    stopping: AbortSignal,
  ): Promise<void> {
    this.#isRunning = true;
    const { troubles } = this.#parts.first.queue.server;
    const work = { takes: troubles.work(), renewals: troubles.work() };
    const share = new HeldShare(this.#parts, {
      consume: (part, lease) => new GroupTenure(part, lease, settings, consume),
      group: settings.group,
      work,
    });
    await new Promise<void>((resolve) => {
      if (stopping.aborted) resolve();
      else stopping.addEventListener("abort", () => resolve(), { once: true });
    });
    await share.end();
    for (const ended of [work.takes, work.renewals]) ended.ended();
    this.#isRunning = false;
  }
}
