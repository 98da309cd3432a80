import { isError, textField } from "../../values/thrown.ts";
import type { Attributes } from "@opentelemetry/api";

/** Operations on a queue, and their types in the messaging conventions. */
const OPERATION_TYPES = {
  offer: "send",
  take: "receive",
  process: "process",
  ack: "settle",
  nack: "settle",
  reject: "settle",
  extend: "settle",
} as const;

/** The name of an operation. */
export type OperationName = keyof typeof OPERATION_TYPES;

/** The queue and the consumer group that an operation is about. */
export interface MessagingDestination {
  readonly queue: string;
  /** The consumer group; undefined for a plain queue, and for an offer. */
  readonly group?: string | undefined;
}

/** The attributes of one queue and group. They are cached, since each message needs them several times. */
type Known = Partial<Record<OperationName, Attributes>>;

// One entry per queue and group. Clients keep an object per open queue anyway, so this adds little.
const known = new Map<string, Map<string | undefined, Known>>();

/** The attributes shared by all spans and metrics of an operation. Always the same object, which is frozen. */
export function attributesOf(
  name: OperationName,
  { queue, group }: MessagingDestination,
): Attributes {
  const found = known.get(queue)?.get(group);
  return found?.[name] ?? remember(name, queue, group, found);
}

function remember(
  name: OperationName,
  queue: string,
  group: string | undefined,
  found: Known = {},
): Attributes {
  const attributes: Attributes = Object.freeze({
    "messaging.system.name": "delayline",
    "messaging.destination.name": queue,
    "messaging.operation.name": name,
    "messaging.operation.type": OPERATION_TYPES[name],
    ...(group !== undefined && { "messaging.consumer.group.name": group }),
  });
  found[name] = attributes;
  const groups = known.get(queue) ?? new Map<string | undefined, Known>();
  known.set(queue, groups.set(group, found));
  return attributes;
}

const failed = new WeakMap<Attributes, Map<string, Attributes>>();

/** The attributes with an `error.type`. Always the same object for the same type of error. */
export function withError(attributes: Attributes, error: unknown): Attributes {
  const type = errorTypeOf(error);
  const byType = failed.get(attributes) ?? new Map<string, Attributes>();
  const found = byType.get(type) ?? { ...attributes, "error.type": type };
  failed.set(attributes, byType.set(type, found));
  return found;
}

/** The value of `error.type`: the stable code of a `DelaylineError`, or the name of another error. */
export function errorTypeOf(error: unknown): string {
  if (!isError(error)) return "_OTHER";
  return textField(error, "code") || textField(error, "name") || "_OTHER";
}
