import type { FailedAttempt, FlowOptions, MessageHeaders } from "../../index.ts";
import {
  LAST_DATE,
  LIMITS,
  arrivals,
  checkedHeaders,
  checks,
  ids,
  trailers,
} from "../../inside.ts";
import { isUnreadable, type MessageState, type Sighting } from "./sighting.ts";

/** The first line of an export. */
export interface ExportHead {
  /** The version of the format: 1. */
  readonly delayline: 1;
  /** A unique name of this export, by which a queue remembers what was imported from it. */
  readonly export: string;
  readonly queue: string;
  readonly kind: "plain" | "reliable";
  /** How many partitions the queue has; 0 for an ordinary queue. */
  readonly partitions: number;
  /** The consumer groups of a reliable queue. */
  readonly groups: readonly string[];
  /** The flow of the queue, if it has one: for people, since an import does not set it. */
  readonly flow?: FlowOptions;
  /** When the export began (epoch ms). */
  readonly exportedAt: number;
}

/** The last line of an export. It is missing if the export was interrupted. */
export interface ExportEnd {
  readonly end: true;
  /** How many lines of messages precede it. */
  readonly messages: number;
}

/** The line of a message in an export. Fields that do not apply to its state are left out. */
export interface MessageRecord {
  readonly state: MessageState | ListState;
  readonly id?: string;
  readonly key?: string;
  readonly headers?: MessageHeaders;
  readonly lane?: string;
  readonly priority?: number;
  /**
   * When it is due (epoch ms). It takes precedence over the deadline at the beginning of the id. A message in flight has
   * it if it is held back until then.
   */
  readonly deadline?: number | "Infinity";
  readonly attempts?: number;
  readonly group?: string;
  readonly reason?: string;
  /** The failed attempts, oldest first. */
  readonly failures?: readonly FailedAttempt[];
  /** The payload in base64. */
  readonly payload: string;
  /**
   * The trailer in base64, only if key, headers, lane, priority and failures do not reproduce it to the byte. If it is
   * present, they are ignored.
   */
  readonly trailer?: string;
}

/** States of payloads without ids: those in the ready LIST of a plain queue, and in the quarantine. */
export type ListState = "listed" | "quarantine" | "unreadable";

/** The record of a message. */
export function recordOf(seen: Sighting): MessageRecord {
  const { state, id, key, headers, payload, trailer, deadline, attempts, group, reason } = seen;
  const { failures, heldBackUntil, lane, priority } = seen;
  if (isUnreadable(seen)) return listRecord("unreadable", payload);
  const isReproducible = trailers
    .packTrailer({ key: key ?? "", headers: headers ?? {}, lane, priority, failures })
    .equals(trailer);
  return {
    state,
    id,
    ...(key !== undefined && { key }),
    ...(headers !== undefined && { headers }),
    ...(lane !== undefined && { lane }),
    ...(priority !== undefined && { priority }),
    ...((state === "delayed" || state === "retrying") && {
      deadline: deadline === Infinity ? "Infinity" : deadline,
    }),
    ...(heldBackUntil !== undefined && { deadline: heldBackUntil }),
    ...(attempts > 0 && { attempts }),
    ...(group !== undefined && { group }),
    ...(reason !== undefined && { reason }),
    ...(failures.length > 0 && { failures }),
    payload: payload.toString("base64"),
    ...(!isReproducible && { trailer: trailer.toString("base64") }),
  };
}

/** The record of a payload without an id. */
export function listRecord(state: ListState, payload: Buffer): MessageRecord {
  return { state, payload: payload.toString("base64") };
}

/**
 * Parses the first line of an export.
 *
 * @throws {TypeError} if the line is something else.
 */
export function parseHead(line: string): ExportHead {
  const head = parseObject(line) as Partial<ExportHead>;
  const { kind, groups, partitions } = head;
  const isLegal =
    head.delayline === 1 &&
    typeof head.export === "string" &&
    /^[\w-]{1,100}$/.test(head.export) &&
    (kind === "plain" || kind === "reliable") &&
    Number.isInteger(partitions) &&
    Array.isArray(groups) &&
    groups.every((group) => typeof group === "string" && group !== "");
  if (isLegal) return head as ExportHead;
  throw new TypeError("it is not the first line of an export of this version");
}

/** Whether a line is the last line of an export. */
export function isEnd(line: string): boolean {
  return /^\s*\{\s*"end"\s*:\s*true\b/.test(line);
}

/** The number of messages in the last line of an export; undefined if it has none. */
export function parseEnd(line: string): number | undefined {
  try {
    const { messages } = parseObject(line) as Partial<ExportEnd>;
    return messages;
  } catch {
    return undefined;
  }
}

/** A parsed line of an export. */
export interface ParsedRecord {
  /** The row to write into the queue. */
  readonly arrival: arrivals.Arrival;
  /** The id, which decides the partition; undefined if the message may go into any. */
  readonly id: Buffer | undefined;
}

/**
 * Parses the line of a message.
 *
 * @throws {TypeError | RangeError} that names the invalid field. The message does not repeat the payload.
 */
export function parseRecord(line: string): ParsedRecord {
  const record = parseObject(line) as Partial<MessageRecord>;
  const { state, group, reason = "", deadline, attempts = 0 } = record;
  const payload = bytesOf("payload", record.payload);
  if (state === "listed") return { arrival: arrivals.listArrival("ready", payload), id: undefined };
  if (state === "quarantine" || state === "unreadable") {
    return { arrival: arrivals.listArrival(state, payload), id: undefined };
  }
  if (typeof record.id !== "string" || !ids.isMessageId(record.id)) {
    throw new TypeError("id must be a message id (<deadline>-<hex>)");
  }
  const address = ids.parseMessageId(record.id);
  const id = address.subarray(8);
  if (!Number.isInteger(attempts) || attempts < 0 || attempts >= 2 ** 32 - 1) {
    throw new RangeError("attempts must be a whole number");
  }
  const { trailer, hasKey } = trailerOf(record);
  const message = { address, payload, trailer, attempts };
  if (state === "delayed") {
    const at = instantOf(deadline);
    return { arrival: arrivals.delayedArrival(message, { id, deadline: at, hasKey }), id };
  }
  if (group !== undefined && (typeof group !== "string" || group === "")) {
    throw new TypeError("group must be the name of a consumer group");
  }
  const isHeldBack = state === "in flight" && deadline !== undefined;
  if (state === "ready" || (state === "in flight" && !isHeldBack)) {
    return { arrival: arrivals.readyArrival(message, group), id };
  }
  if (group === undefined) throw new TypeError("group must be the name of a consumer group");
  if (state === "retrying" || isHeldBack) {
    return { arrival: arrivals.retryArrival(message, group, instantOf(deadline)), id };
  }
  if (typeof reason !== "string") throw new TypeError("reason must be a string");
  if (state === "dead") return { arrival: arrivals.deadArrival(message, group, reason), id };
  throw new TypeError("state is unknown");
}

function trailerOf(record: Partial<MessageRecord>): { trailer: Buffer; hasKey: boolean } {
  if (record.trailer !== undefined) {
    const trailer = bytesOf("trailer", record.trailer);
    return { trailer, hasKey: trailers.unpackTrailer(trailer).key !== undefined };
  }
  const { key } = record;
  if (key !== undefined) checks.checkKey(key);
  const headers = checkedHeaders(record.headers) ?? {};
  const failures = checkedFailures(record.failures);
  const { lane, priority } = record;
  if (lane !== undefined) checkLane(lane);
  // What a trailer can hold, whoever wrote it.
  if (priority !== undefined) checks.checkWhole("priority", priority, -127, 128);
  return {
    trailer: trailers.packTrailer({ key: key ?? "", headers, lane, priority, failures }),
    hasKey: key !== undefined,
  };
}

function checkLane(lane: unknown): asserts lane is string {
  const most = trailers.MAX_LANE;
  if (typeof lane === "string" && Buffer.byteLength(lane) <= most) return;
  throw new TypeError(`lane must be a string of at most ${most} bytes`);
}

function checkedFailures(failures: unknown = []): readonly FailedAttempt[] {
  if (Array.isArray(failures) && failures.every(isFailure)) return failures.slice(-LIMITS.failures);
  throw new TypeError("failures must be an array of { attempt, at, reason }");
}

function isFailure(failure: Partial<FailedAttempt> | null): boolean {
  const { attempt = -1, at = -1, reason } = failure ?? {};
  const isCount = Number.isInteger(attempt) && attempt >= 0 && attempt < 2 ** 32;
  const isInstant = Number.isInteger(at) && at >= 0 && at <= LAST_DATE;
  return isCount && isInstant && typeof reason === "string";
}

function instantOf(deadline: unknown): number {
  // A score that another program wrote: the message is never due.
  if (deadline === "Infinity") return Infinity;
  // An export repeats what Redis held, whoever wrote it there and however long ago.
  return checks.checkInstant("deadline", deadline, { anyTime: true });
}

function bytesOf(name: string, text: unknown): Buffer {
  if (typeof text === "string" && BASE64.test(text)) return Buffer.from(text, "base64");
  throw new TypeError(`${name} must be base64`);
}

function parseObject(line: string): object {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new TypeError("it is not JSON");
  }
  if (typeof value === "object" && value !== null) return value;
  throw new TypeError("it is not an object");
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
