import type { Attributes, Meter, ObservableCallback, ObservableCounter } from "@opentelemetry/api";

/**
 * A counter that is read when metrics are collected, so that counting itself costs next to nothing.
 *
 * Counts are kept per attributes object, so callers must pass the same object for the same attributes.
 */
export class Tally {
  readonly #counter: ObservableCounter;
  readonly #counts = new Map<Attributes, number>();
  readonly #observe: ObservableCallback = (result) => {
    for (const [attributes, count] of this.#counts) result.observe(count, attributes);
  };

  constructor(meter: Meter, name: string, description: string) {
    this.#counter = meter.createObservableCounter(name, { unit: "{message}", description });
    this.#counter.addCallback(this.#observe);
  }

  add(count: number, attributes: Attributes): void {
    this.#counts.set(attributes, (this.#counts.get(attributes) ?? 0) + count);
  }

  close(): void {
    this.#counter.removeCallback(this.#observe);
  }
}
