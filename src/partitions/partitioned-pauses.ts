import type { Call } from "../queue/call.ts";
import type { PauseWatch } from "../queue/pause-watch.ts";
import type { Parts } from "./parts/parts.ts";

/** Pauses and resumes all partitions of a queue. */
export class PartitionedPauses implements Pick<PauseWatch, "pause" | "resume" | "ask"> {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async pause(call?: Call): Promise<void> {
    await this.#onAll((pauses) => pauses.pause(call), call);
  }

  async resume(call?: Call): Promise<void> {
    await this.#onAll((pauses) => pauses.resume(call), call);
  }

  /** Whether any partition is paused. A call that failed half way may have paused only some of them. */
  async ask(call?: Call): Promise<boolean> {
    const flags = await this.#parts.onAll(({ pauses }) => pauses.ask(call), call);
    return flags.includes(true);
  }

  /**
   * Acts on all partitions, and again if the fact has changed meanwhile: new partitions are created with the state that
   * partition 0 had at that moment.
   */
  async #onAll(act: (pauses: PauseWatch) => Promise<void>, call?: Call): Promise<void> {
    let epoch: number;
    do {
      ({ epoch } = await this.#parts.ask(call));
      const parts = this.#parts.active.map((partition) => this.#parts.at(partition));
      await Promise.all(parts.map(({ pauses }) => act(pauses)));
    } while ((await this.#parts.ask(call)).epoch !== epoch);
  }
}
