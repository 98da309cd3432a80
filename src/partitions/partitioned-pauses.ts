import type { PauseWatch } from "../queue/pause-watch.ts";
import type { Parts } from "./parts.ts";

/** Pauses a queue in partitions: all of them. */
export class PartitionedPauses implements Pick<PauseWatch, "pause" | "resume" | "ask"> {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async pause(signal?: AbortSignal): Promise<void> {
    const parts = await this.#parts.all(signal);
    await Promise.all(parts.map(({ pauses }) => pauses.pause(signal)));
  }

  async resume(signal?: AbortSignal): Promise<void> {
    const parts = await this.#parts.all(signal);
    await Promise.all(parts.map(({ pauses }) => pauses.resume(signal)));
  }

  /** Whether any is paused: a call that has failed half way may have left some. */
  async ask(signal?: AbortSignal): Promise<boolean> {
    const parts = await this.#parts.all(signal);
    const flags = await Promise.all(parts.map(({ pauses }) => pauses.ask(signal)));
    return flags.includes(true);
  }
}
