import {
  diag,
  type BatchObservableCallback,
  type BatchObservableResult,
  type Meter,
  type Observable,
} from "@opentelemetry/api";
import type { QueueCounters } from "../../observe/counters.ts";
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
  readonly #overdue: Observable;
  readonly #overdueAge: Observable;
  readonly #readyAge: Observable;
  readonly #consumers: Observable;
  readonly #paused: Observable;
  readonly #deliveries: Observable;
  readonly #observe: BatchObservableCallback = (result) => this.#observeAll(result);

  constructor(meter: Meter, queues: () => Iterable<ObservedQueue>) {
    this.#meter = meter;
    this.#queues = queues;
    const gauge = (name: string, unit: string, description: string) =>
      meter.createObservableGauge(`delayline.queue.${name}`, { unit, description });
    this.#messages = gauge("messages", "{message}", "Messages of a queue, by state.");
    this.#overdue = gauge("overdue", "{message}", "Messages that are due, and not moved yet.");
    this.#overdueAge = gauge("overdue_age", "s", "How long ago the earliest deadline passed.");
    this.#readyAge = gauge("ready_age", "s", "How long the oldest ready message has been ready.");
    this.#consumers = gauge("consumers", "{consumer}", "Consumers in the groups of the queue.");
    this.#paused = gauge("paused", "1", "1 while the queue is paused.");
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
    return [
      this.#messages,
      this.#overdue,
      this.#overdueAge,
      this.#readyAge,
      this.#consumers,
      this.#paused,
      this.#deliveries,
    ];
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
    for (const [state, count] of Object.entries(statesOf(stats))) {
      result.observe(this.#messages, count, { ...attributes, "delayline.message.state": state });
    }
    const { overdue, nextDeadline = Infinity, serverTime, oldestReadyAge, consumers } = stats;
    result.observe(this.#overdue, overdue, attributes);
    result.observe(this.#overdueAge, Math.max(0, serverTime - nextDeadline) / 1000, attributes);
    if (oldestReadyAge !== undefined) {
      result.observe(this.#readyAge, oldestReadyAge / 1000, attributes);
    }
    if (consumers !== undefined) result.observe(this.#consumers, consumers, attributes);
    result.observe(this.#paused, stats.isPaused ? 1 : 0, attributes);
  }
}

const OUTCOMES = ["acknowledged", "retried", "dead", "reclaimed"] as const;

function statesOf({ delayed, ready, inFlight, retries, dead, quarantined }: QueueStats) {
  return { delayed, ready, in_flight: inFlight, retrying: retries, dead, quarantined };
}
