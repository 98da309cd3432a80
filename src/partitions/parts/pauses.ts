import type { Call } from "../../queue/call.ts";
import type { PauseWatch } from "../../queue/pause-watch.ts";
import type { Server } from "../../redis/server.ts";
import type { Parts } from "./parts.ts";

/** Pauses and resumes all parts of a queue. */
export class Pauses {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async pause(call?: Call, reason?: string): Promise<void> {
    await this.#onAll((pauses) => pauses.pause(call, reason), call);
    await this.#parts.activity.note({ what: "paused", detail: reason });
  }

  /**
   * Pauses the parts on a server before anything else is moved or taken.
   *
   * Rejects with ioredis's errors.
   */
  async pauseFirst(server: Server, reason: string): Promise<void> {
    const parts = this.#parts.active.filter(({ queue }) => queue.server === server);
    await Promise.all(parts.map(({ pauses }) => pauses.pauseFirst(reason)));
  }

  async resume(call?: Call): Promise<void> {
    await this.#onAll((pauses) => pauses.resume(call), call);
    await this.#parts.activity.note({ what: "resumed" });
  }

  /** Whether any part is paused. A call that failed half way may have paused only some of them. */
  async ask(call?: Call): Promise<boolean> {
    const flags = await this.#parts.onAll(({ pauses }) => pauses.ask(call), call);
    return flags.includes(true);
  }

  #onAll(act: (pauses: PauseWatch) => Promise<void>, call?: Call): Promise<void> {
    return this.#parts.changeAll(({ pauses }) => act(pauses), call);
  }
}
