import {
  diag,
  type BatchObservableCallback,
  type BatchObservableResult,
  type Meter,
  type Observable,
} from "@opentelemetry/api";
import type { QueueCounters } from "../../observe/counters.ts";
import { PAUSED, SHOWN, valueOf, type ShownNumber, type Unit } from "../../nouns/numbers.ts";
import { PLACES } from "../../nouns/places.ts";
import type { QueueStats } from "../../observe/queue-stats.ts";

/** A queue whose numbers can be observed: any handle. */
export interface ObservedQueue {
  readonly name: string;
  readonly counters: QueueCounters;
  stats(): Promise<QueueStats>;
}

/** Gauges of the numbers of queues, read at each collection. */
export class QueueGauges {
  readonly #meter: Meter;
  readonly #queues: () => Iterable<ObservedQueue>;
  readonly #messages: Observable;
  readonly #gauges: ReadonlyMap<ShownNumber, Observable>;
  readonly #paused: Observable;
  readonly #deliveries: Observable;
  readonly #observe: BatchObservableCallback = (result) => this.#observeAll(result);

  constructor(meter: Meter, queues: () => Iterable<ObservedQueue>) {
    this.#meter = meter;
    this.#queues = queues;
    const gauge = (name: string, unit: string, description: string) =>
      meter.createObservableGauge(`delayline.queue.${name}`, { unit, description });
    this.#messages = gauge("messages", "{message}", "Messages of a queue, by state.");
    this.#gauges = new Map(
      SHOWN.flatMap((number) => {
        const { metric, unit, help } = number;
        return metric === undefined ? [] : [[number, gauge(metric, UNITS[unit], help)] as const];
      }),
    );
    this.#paused = gauge("paused", "1", PAUSED.help);
    this.#deliveries = meter.createObservableCounter("delayline.client.deliveries", {
      unit: "{delivery}",
      description: "Deliveries that this client has settled or reclaimed, by outcome.",
    });
    meter.addBatchObservableCallback(this.#observe, this.#all);
  }

  close(): void {
    this.#meter.removeBatchObservableCallback(this.#observe, this.#all);
  }

  get #all(): Observable[] {
    return [this.#messages, ...this.#gauges.values(), this.#paused, this.#deliveries];
  }

  async #observeAll(result: BatchObservableResult): Promise<void> {
    // Two handles of one queue return the same numbers.
    const queues = new Map(Array.from(this.#queues(), (queue) => [queue.name, queue]));
    await Promise.all(Array.from(queues.values(), (queue) => this.#observeOne(result, queue)));
  }

  async #observeOne(result: BatchObservableResult, queue: ObservedQueue): Promise<void> {
    const { name, counters } = queue;
    const attributes = { "messaging.system.name": "delayline", "messaging.destination.name": name };
    for (const outcome of OUTCOMES) {
      const own = { ...attributes, "delayline.delivery.outcome": outcome };
      result.observe(this.#deliveries, counters[outcome], own);
    }
    let stats: QueueStats;
    try {
      stats = await queue.stats();
    } catch (error) {
      diag.warn(`delayline: cannot observe queue "${name}"`, error);
      return;
    }
    for (const [state, { number }] of Object.entries(PLACES)) {
      const own = { ...attributes, "delayline.message.state": state.replace(" ", "_") };
      result.observe(this.#messages, stats[number], own);
    }
    for (const [{ name: number, unit }, observable] of this.#gauges) {
      const value = valueOf(number, stats, stats.serverTime);
      if (value === undefined) continue;
      result.observe(observable, unit === "duration" ? value / 1000 : value, attributes);
    }
    result.observe(this.#paused, PAUSED.of(stats), attributes);
  }
}

const OUTCOMES = ["acknowledged", "retried", "dead", "reclaimed"] as const;

/** In UCUM. */
const UNITS: Readonly<Record<Unit, string>> = {
  messages: "{message}",
  schedules: "{schedule}",
  consumers: "{consumer}",
  processes: "{process}",
  duration: "s",
  instant: "s",
};
