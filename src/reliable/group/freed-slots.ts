import { freeSlots } from "../../lua/queue/flow.ts";
import type { Entry } from "../../lua/places/stream.ts";
import { unpackTrailer } from "../../queue/message/trailer.ts";
import type { Queue } from "../../queue/queue.ts";
import { networkTime } from "../../time/runtime.ts";

/**
 * Tells Redis that messages have left this process's hands of which only so many may be in hand: others may become ready. The
 * first is told at once; those that follow within {@link PAUSE} go together.
 *
 * Nothing depends on it but time: who moves messages looks by itself, a second later at most.
 */
export class FreedSlots {
  readonly #queue: Queue;
  readonly #lanes = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** The message of this entry is settled, or lost. */
  add({ trailer }: Entry): void {
    this.#lanes.add(unpackTrailer(trailer).lane ?? "");
    if (this.#timer !== undefined) return;
    this.#tell();
    this.#timer = networkTime.setTimeout(() => {
      this.#timer = undefined;
      if (this.#lanes.size > 0) this.#tell();
    }, PAUSE);
    this.#timer.unref();
  }

  #tell(): void {
    const rows = [...this.#lanes].map((name) => ({ name }));
    this.#lanes.clear();
    const { background } = this.#queue.server.connections;
    if (background.status !== "ready") return;
    const { channel } = this.#queue.keys;
    void this.#queue.run(background, freeSlots, { channel }, rows).catch(() => {});
  }
}

/** Milliseconds. */
const PAUSE = 5;
