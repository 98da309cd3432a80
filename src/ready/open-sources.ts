import type { Pauses } from "../queue/pause-watch.ts";

/** A ready LIST, and where the receipts of its give-backs stand. */
export interface Source {
  readonly ready: string;
  readonly receipts: string;
}

/** A ready LIST, and whether its queue is paused. */
export interface PausableSource extends Source {
  readonly pauses: Pauses;
}

/** Which of several LISTs comes first: always the first of them, or each in its turn. */
export type SourceOrder = "fixed" | "rotating";

/** The LISTs that a taker takes from: which of them are open, and in which order they are asked. */
export class OpenSources {
  readonly #order: SourceOrder;
  readonly #onChange: () => void;
  #all: readonly PausableSource[] = [];
  #open: readonly Source[] = [];
  /** Ends the listening to their pauses. */
  #unlisten: readonly (() => void)[] = [];
  #turn = 0;

  /** `onChange` is called when other sources are open than before. */
  constructor(order: SourceOrder = "fixed", onChange: () => void) {
    this.#order = order;
    this.#onChange = onChange;
  }

  get all(): readonly PausableSource[] {
    return this.#all;
  }

  /** Those that are not paused. It is another array whenever one is paused or resumed, and with each {@link set}. */
  get open(): readonly Source[] {
    return this.#open;
  }

  /** Those of which it is not known whether they are paused. */
  get unknown(): readonly PausableSource[] {
    return this.#all.filter(({ pauses }) => pauses.isPaused === undefined);
  }

  /** From now on it is these. */
  set(sources: readonly PausableSource[]): void {
    this.close();
    this.#all = sources;
    this.#unlisten = sources.map(({ pauses }) => pauses.onChange(() => this.#note()));
    this.#note();
  }

  /**
   * The open ones in the order in which the next `count` messages are asked for. In a rotating order the next
   * question begins behind `count` of them: so each LIST comes to be among the first, and none starves.
   */
  next(count: number): readonly Source[] {
    const { length } = this.#open;
    if (this.#order === "fixed" || length < 2) return this.#open;
    const first = this.#turn % length;
    this.#turn = first + count;
    return [...this.#open.slice(first), ...this.#open.slice(0, first)];
  }

  /** Listens to their pauses no more. */
  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #note(): void {
    this.#open = this.#all.filter(({ pauses }) => pauses.isPaused === false);
    this.#onChange();
  }
}
