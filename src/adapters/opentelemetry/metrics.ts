import {
  ROOT_CONTEXT,
  type Attributes,
  type Histogram,
  type Meter,
  type ObservableCallback,
  type ObservableCounter,
} from "@opentelemetry/api";
import type { DeliveredMessage, TransferEvent } from "../../observe/events.ts";
import { BOUNDS } from "../../observe/histogram.ts";
import {
  attributesOf,
  withError,
  type MessagingDestination,
  type OperationName,
} from "./attributes.ts";

/** The metrics of operations on queues. */
export class Metrics {
  readonly #operations: Histogram;
  readonly #sent: Tally;
  readonly #consumed: Tally;
  readonly #processing: Histogram;
  readonly #lateness: Histogram;
  readonly #lateAttributes = new Map<string, Readonly<Record<Kind, Attributes>>>();

  constructor(meter: Meter) {
    this.#operations = meter.createHistogram("messaging.client.operation.duration", {
      unit: "s",
      description: "How long offers, takes and settlements took.",
      advice: { explicitBucketBoundaries: [...SECONDS] },
    });
    this.#processing = meter.createHistogram("messaging.process.duration", {
      unit: "s",
      description: "How long handlers ran.",
      advice: { explicitBucketBoundaries: [...SECONDS] },
    });
    this.#lateness = meter.createHistogram("delayline.delivery.lateness", {
      unit: "s",
      description:
        "From a deadline until the message was moved (system), and from then until it was taken (backlog).",
      advice: { explicitBucketBoundaries: BOUNDS.map((bound) => bound / 1000) },
    });
    const sent = "Messages that were offered.";
    this.#sent = new Tally(meter, "messaging.client.sent.messages", sent);
    const consumed = "Messages that were handed out, to handlers or by hand.";
    this.#consumed = new Tally(meter, "messaging.client.consumed.messages", consumed);
  }

  /** Records the duration (ms) of an operation. */
  ended(
    name: OperationName,
    event: MessagingDestination & { readonly error?: unknown },
    duration: number,
  ): void {
    const attributes = attributesOf(name, event);
    const histogram = name === "process" ? this.#processing : this.#operations;
    record(histogram, duration, "error" in event ? withError(attributes, event.error) : attributes);
  }

  /** Counts messages that were offered; with an `error`, messages whose offer failed. */
  sent(queue: string, count: number, error?: unknown): void {
    const attributes = attributesOf("offer", { queue });
    this.#sent.add(count, error === undefined ? attributes : withError(attributes, error));
  }

  /** Counts messages that were handed out, and records their backlog lateness. */
  consumed(
    name: "take" | "process",
    event: MessagingDestination,
    messages: readonly DeliveredMessage[],
  ): void {
    if (messages.length === 0) return;
    this.#consumed.add(messages.length, attributesOf(name, event));
    for (const { readyAt, takenAt } of messages) {
      if (readyAt !== undefined && takenAt !== undefined) {
        this.#late(event.queue, "backlog", takenAt - readyAt);
      }
    }
  }

  /** Records how late messages were moved. */
  transferred({ queue, count, lateness }: TransferEvent): void {
    for (let i = 0; i < count; i++) this.#late(queue, "system", lateness);
  }

  close(): void {
    this.#sent.close();
    this.#consumed.close();
  }

  #late(queue: string, kind: Kind, lateness: number): void {
    if (!Number.isFinite(lateness)) return;
    let attributes = this.#lateAttributes.get(queue);
    if (attributes === undefined) {
      attributes = {
        system: lateAttributes(queue, "system"),
        backlog: lateAttributes(queue, "backlog"),
      };
      this.#lateAttributes.set(queue, attributes);
    }
    record(this.#lateness, Math.max(0, lateness), attributes[kind]);
  }
}

/** The two parts of lateness. */
type Kind = "system" | "backlog";

function lateAttributes(queue: string, kind: Kind): Attributes {
  return {
    "messaging.system.name": "delayline",
    "messaging.destination.name": queue,
    "delayline.lateness.kind": kind,
  };
}

/** Records a duration (ms). It needs no context: exemplars come from spans. */
function record(histogram: Histogram, duration: number, attributes: Attributes): void {
  histogram.record(duration / 1000, attributes, ROOT_CONTEXT);
}

/** The upper bounds of buckets that the messaging conventions require, in seconds. */
const SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const;

/**
 * A counter that is read when metrics are collected, so that counting itself costs next to nothing.
 *
 * Counts are kept per attributes object, so callers must pass the same object for the same attributes.
 */
class Tally {
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
