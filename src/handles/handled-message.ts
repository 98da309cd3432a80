import { messageIdAt, type MessageId } from "../queue/message/message.ts";
import { parseProcessName } from "../queue/process-name.ts";
import type { HandledNote } from "../reliable/handled.ts";
import { LAST_DATE } from "../time/last-date.ts";

/** A message that a group has handled: one of its consumers has acknowledged it. */
export interface HandledMessage {
  readonly id: MessageId;
  /** The business key; undefined if the message was offered without one. */
  readonly key: string | undefined;
  /** The consumer group that has handled it. */
  readonly group: string;
  /** When it was acknowledged, on the Redis server's clock. */
  readonly handledAt: Date;
  /** Which attempt succeeded: 1 for the first. */
  readonly attempt: number;
  /** How long that attempt took, in milliseconds; undefined if that is not known. */
  readonly duration: number | undefined;
  /** The host of the process that acknowledged it; undefined if that is not known. */
  readonly host: string | undefined;
  /** The id of that process. */
  readonly pid: number | undefined;
}

/** Makes a note of a script readable. */
export function handledMessage(note: HandledNote): HandledMessage {
  const { address, key, group, handledAt, attempt, duration, process } = note;
  const { host, pid } = parseProcessName(process) ?? {};
  return {
    id: messageIdAt(address),
    key,
    group,
    handledAt: new Date(Math.min(handledAt, LAST_DATE)),
    attempt,
    duration,
    host,
    pid,
  };
}
