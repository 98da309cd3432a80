import type { Attributes } from "@opentelemetry/api";

/** What is done with a queue, and what the conventions call it. */
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

/** What an operation is done with. */
export interface Destination {
  readonly queue: string;
  /** The consumer group; undefined of a plain queue, and of an offer. */
  readonly group?: string | undefined;
}

/** What is remembered of a queue and a group: it is asked for several times for each message. */
type Known = Partial<Record<OperationName, Attributes>>;

// As many as there are queues, each of which its client remembers, too.
const known = new Map<string, Map<string | undefined, Known>>();

/** The attributes that all spans and metrics of an operation have. The same object each time: it must not be changed. */
export function attributesOf(name: OperationName, { queue, group }: Destination): Attributes {
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

/** The same attributes with what went wrong; the same object for each type of error. */
export function withError(attributes: Attributes, error: unknown): Attributes {
  const type = errorTypeOf(error);
  const byType = failed.get(attributes) ?? new Map<string, Attributes>();
  const found = byType.get(type) ?? { ...attributes, "error.type": type };
  failed.set(attributes, byType.set(type, found));
  return found;
}

/** What `error.type` says: the stable code of an error of ours, or the name of another one. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return "_OTHER";
  const { code, name } = error as Error & { readonly code?: unknown };
  if (typeof code === "string" && code !== "") return code;
  return typeof name === "string" && name !== "" ? name : "_OTHER";
}
