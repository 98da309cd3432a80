import {
  diag,
  type BatchObservableCallback,
  type BatchObservableResult,
  type Meter,
  type Observable,
} from "@opentelemetry/api";
import type { QueueCounters } from "../../observe/counters.ts";
import { PAUSED, QUEUE_GAUGES, type GaugeName, type Unit } from "../../observe/queue-gauges.ts";
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
  readonly #gauges: ReadonlyMap<GaugeName, Observable>;
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
      GAUGES.map(([name, spelling]) => {
        const { unit, help } = QUEUE_GAUGES[name];
        return [name, gauge(spelling, UNITS[unit], help)];
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
    const read = (gauge: GaugeName) => QUEUE_GAUGES[gauge].of(stats, stats.serverTime);
    for (const [gauge, state] of STATES) {
      const own = { ...attributes, "delayline.message.state": state };
      result.observe(this.#messages, read(gauge) ?? 0, own);
    }
    for (const [gauge, observable] of this.#gauges) {
      const value = read(gauge);
      if (value === undefined) continue;
      const isDuration = QUEUE_GAUGES[gauge].unit === "duration";
      result.observe(observable, isDuration ? value / 1000 : value, attributes);
    }
    result.observe(this.#paused, PAUSED.of(stats), attributes);
  }
}

const OUTCOMES = ["acknowledged", "retried", "dead", "reclaimed"] as const;

/** The numbers that are one metric, by state. */
const STATES = [
  ["delayed", "delayed"],
  ["ready", "ready"],
  ["inFlight", "in_flight"],
  ["retries", "retrying"],
  ["dead", "dead"],
  ["quarantined", "quarantined"],
] as const satisfies readonly (readonly [GaugeName, string])[];

/** The numbers that are a metric each, with its name. */
const GAUGES = [
  ["overdue", "overdue"],
  ["overdueBy", "overdue_age"],
  ["oldestReadyAge", "ready_age"],
  ["oldestInFlightAge", "in_flight_age"],
  ["consumers", "consumers"],
  ["unplanned", "unplanned_schedules"],
] as const satisfies readonly (readonly [GaugeName, string])[];

/** In UCUM. */
const UNITS: Readonly<Record<Unit, string>> = {
  messages: "{message}",
  schedules: "{schedule}",
  consumers: "{consumer}",
  processes: "{process}",
  duration: "s",
  instant: "s",
};
