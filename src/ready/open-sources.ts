import type { PauseState } from "../queue/pause-watch.ts";

/** A ready LIST, and the key of its give-back receipts. */
export interface Source {
  readonly ready: string;
  readonly receipts: string;
}

/** A {@link Source} whose queue may be paused. */
export interface PausableSource extends Source {
  readonly pauses: PauseState;
}

/** The LIST that is asked first: always the first one, or another one each time. */
export type SourceOrder = "fixed" | "rotating";

/** The LISTs that a taker takes from: which of them are open (not paused), and in which order to ask them. */
export class OpenSources {
  readonly #order: SourceOrder;
  readonly #onChange: () => void;
  #all: readonly PausableSource[] = [];
  #open: readonly Source[] = [];
  /** Stop listening to the sources' pauses. */
  #unlisten: readonly (() => void)[] = [];
  /** In a rotating order: where the next question begins, modulo the number of open sources. */
  #start = 0;

  /** `onChange` is called whenever {@link open} becomes another array. */
  constructor(order: SourceOrder = "fixed", onChange: () => void) {
    this.#order = order;
    this.#onChange = onChange;
  }

  get all(): readonly PausableSource[] {
    return this.#all;
  }

  /** The sources known not to be paused. A new array whenever a pause changes, and with each {@link set}. */
  get open(): readonly Source[] {
    return this.#open;
  }

  /** The sources that may be paused: their state is not known yet. */
  get unknown(): readonly PausableSource[] {
    return this.#all.filter(({ pauses }) => pauses.isPaused === undefined);
  }

  /** Replaces all sources. */
  set(sources: readonly PausableSource[]): void {
    this.close();
    this.#all = sources;
    this.#unlisten = sources.map(({ pauses }) => pauses.onChange(() => this.#note()));
    this.#note();
  }

  /**
   * The open sources, in the order in which to ask them for the next `count` messages. In a rotating order the next
   * call begins `count` sources further on, so that each LIST comes first at times, and none starves.
   */
  next(count: number): readonly Source[] {
    const { length } = this.#open;
    if (this.#order === "fixed" || length < 2) return this.#open;
    const first = this.#start % length;
    this.#start = first + count;
    return [...this.#open.slice(first), ...this.#open.slice(0, first)];
  }

  /** Stops listening to pauses. */
  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #note(): void {
    this.#open = this.#all.filter(({ pauses }) => pauses.isPaused === false);
    this.#onChange();
  }
}
