import type { Attributes, Counter, Histogram, Meter } from "@opentelemetry/api";
import type { DeliveredMessage, TransferEvent } from "../observe/events.ts";
import { BOUNDS } from "../observe/histogram.ts";
import { attributesOf, errorTypeOf, type Destination, type OperationName } from "./attributes.ts";

/** Measures what is done with queues. */
export class Metrics {
  readonly #operations: Histogram;
  readonly #sent: Counter;
  readonly #consumed: Counter;
  readonly #processing: Histogram;
  readonly #lateness: Histogram;

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
    this.#sent = meter.createCounter("messaging.client.sent.messages", {
      unit: "{message}",
      description: "Messages that were offered.",
    });
    this.#consumed = meter.createCounter("messaging.client.consumed.messages", {
      unit: "{message}",
      description: "Messages that were handed out, to handlers or by hand.",
    });
  }

  /** Notes that an operation has ended after so many milliseconds. */
  ended(
    name: OperationName,
    event: Destination & { readonly error?: unknown },
    duration: number,
  ): void {
    const histogram = name === "process" ? this.#processing : this.#operations;
    histogram.record(duration / 1000, withError(attributesOf(name, event), event));
  }

  /** Counts offers that have ended; with the error if they failed. */
  sent(event: Destination & { readonly error?: unknown }, count: number): void {
    this.#sent.add(count, withError(attributesOf("offer", event), event));
  }

  /** Counts messages that were handed out, and how late they were. */
  consumed(
    name: "take" | "process",
    event: Destination,
    messages: readonly DeliveredMessage[],
  ): void {
    if (messages.length === 0) return;
    this.#consumed.add(messages.length, attributesOf(name, event));
    for (const { readyAt = NaN, takenAt = NaN } of messages) {
      this.#late(event.queue, "backlog", takenAt - readyAt);
    }
  }

  /** Notes how late messages were moved. */
  transferred({ queue, count, lateness }: TransferEvent): void {
    for (let i = 0; i < count; i++) this.#late(queue, "system", lateness);
  }

  #late(queue: string, kind: "system" | "backlog", lateness: number): void {
    if (!Number.isFinite(lateness)) return;
    this.#lateness.record(Math.max(0, lateness) / 1000, {
      "messaging.system": "delayline",
      "messaging.destination.name": queue,
      "delayline.lateness.kind": kind,
    });
  }
}

function withError(attributes: Attributes, event: { readonly error?: unknown }): Attributes {
  if (!("error" in event)) return attributes;
  return { ...attributes, "error.type": errorTypeOf(event.error) };
}

/** The upper bounds of buckets that the conventions ask for, in seconds. */
const SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const;
