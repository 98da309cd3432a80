import type { Attributes } from "@opentelemetry/api";

/** What is done with a queue, and what the conventions call it. */
export const OPERATION_TYPES = {
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

const known = new Map<string, Attributes>();

/** Names of queues may be made up without end: so many are remembered. */
const MAX_KNOWN = 1000;

/** The attributes that all spans and metrics of an operation have. The same object each time: it must not be changed. */
export function attributesOf(name: OperationName, { queue, group }: Destination): Attributes {
  const found = known.get(`${name} ${group ?? ""} ${queue}`);
  if (found !== undefined) return found;
  const attributes: Attributes = Object.freeze({
    "messaging.system": "delayline",
    "messaging.destination.name": queue,
    "messaging.operation.name": name,
    "messaging.operation.type": OPERATION_TYPES[name],
    ...(group !== undefined && { "messaging.consumer.group.name": group }),
  });
  if (known.size < MAX_KNOWN) known.set(`${name} ${group ?? ""} ${queue}`, attributes);
  return attributes;
}

/** What `error.type` says: the stable code of an error of ours, or the name of another one. */
export function errorTypeOf(error: unknown): string {
  if (!(error instanceof Error)) return "_OTHER";
  const { code, name } = error as Error & { readonly code?: unknown };
  if (typeof code === "string" && code !== "") return code;
  return typeof name === "string" && name !== "" ? name : "_OTHER";
}
