import type { FailedAttempt } from "../queue/message/failed-attempt.ts";
import type { MessageHeaders } from "../queue/message/headers.ts";
import {
  formatMessageId,
  messageIdAt,
  parseMessageId,
  unpackMember,
  type MessageId,
} from "../queue/message/message.ts";
import { failuresIn, unpackTrailer } from "../queue/message/trailer.ts";
import type { Content } from "../reliable/contents.ts";
import { LAST_DATE } from "../time/last-date.ts";

/** Where a message can be. */
export type MessageState = "delayed" | "retrying" | "ready" | "in flight" | "dead";

/** A message, and where it was seen. Several groups of a reliable queue have it each in a place of its own. */
export interface Sighting {
  readonly state: MessageState;
  /** The queue's name. */
  readonly queue: string;
  /** The partition; undefined in an ordinary queue, -1 in an ordinary queue that is being taken into partitions. */
  readonly partition: number | undefined;
  readonly id: MessageId;
  readonly key: string | undefined;
  readonly headers: MessageHeaders | undefined;
  /** The payload as it is in Redis. */
  readonly payload: Buffer;
  /** What stands behind the payload: key, headers and failures, as they are in Redis. */
  readonly trailer: Buffer;
  /** How many bytes the payload has. */
  readonly size: number;
  /** When it is due, or was (epoch ms). Of one that is retrying: when its next attempt is due. */
  readonly deadline: number;
  /** When it was offered, or rescheduled last (epoch ms); undefined if its id does not tell, such as Java's. */
  readonly offeredAt: number | undefined;
  /** How many deliveries were made, the one in flight included. */
  readonly attempts: number;
  /** The attempts that have failed, oldest first: the last ten, those before a redrive among them. */
  readonly failures: readonly FailedAttempt[];
  /** The group that it is for; undefined if it is for all. */
  readonly group: string | undefined;
  /** Of one that is ready or in flight: when it became ready (epoch ms), the last time. */
  readonly readyAt: number | undefined;
  /** Of one in flight: the consumer that has it. */
  readonly consumer: string | undefined;
  /** Of one in flight: for how many milliseconds, since its consumer took it or renewed its lease on it. */
  readonly heldFor: number | undefined;
  /** Of a dead letter: why. */
  readonly reason: string | undefined;
  /** Of a dead letter: when (epoch ms). */
  readonly diedAt: number | undefined;
}

/** Where sightings are made. */
export interface Spot {
  readonly queue: string;
  readonly partition: number | undefined;
}

/** A delayed message, as the ZSET has it; undefined if its member has an unknown layout. */
export function sightDelayed(
  spot: Spot,
  { deadline, member }: { readonly deadline: number; readonly member: Buffer },
): Sighting | undefined {
  const found = unpackMember(member);
  if (found === undefined) return undefined;
  const { payload } = found;
  const trailer = member.subarray(payload.byteOffset - member.byteOffset + payload.length);
  const id = formatMessageId(deadline, found.id);
  return sightMessage(spot, { ...found, id, deadline, trailer });
}

/** A delayed message, as a handle has found it. */
export function sightMessage(
  spot: Spot,
  message: Pick<Sighting, "id" | "key" | "headers" | "payload" | "trailer" | "deadline">,
): Sighting {
  const { id, key, headers, payload, trailer, deadline } = message;
  return {
    ...spot,
    ...UNSAID,
    state: "delayed",
    id,
    key,
    headers,
    payload,
    trailer,
    size: payload.length,
    deadline,
    offeredAt: offeredAt(parseMessageId(id).subarray(8)),
    attempts: 0,
    failures: failuresIn(trailer),
  };
}

/** What else is in a reliable queue. */
export function sight(spot: Spot, content: Content): Sighting {
  const { address, payload, trailer, due, ...others } = content;
  const { key, headers } = unpackTrailer(trailer);
  const id = messageIdAt(address);
  return {
    ...spot,
    ...UNSAID,
    ...others,
    id,
    key,
    headers,
    payload,
    trailer,
    size: payload.length,
    failures: failuresIn(trailer),
    deadline: due ?? Number(id.slice(0, id.lastIndexOf("-"))),
    offeredAt: offeredAt(address.subarray(8)),
  };
}

/**
 * Whether a dead letter is none of ours: it can be removed, and not redriven. A handler may have given the same word as its
 * reason; but only an id that is made of the letter's place begins with the time of its death.
 */
export function isUnreadable({ reason, deadline, diedAt }: Sighting): boolean {
  return reason === "unreadable" && deadline === diedAt;
}

const UNSAID = {
  group: undefined,
  readyAt: undefined,
  consumer: undefined,
  heldFor: undefined,
  reason: undefined,
  diedAt: undefined,
} as const;

/** The order stamp of an id of ours, in milliseconds; undefined for others. */
function offeredAt(id: Buffer): number | undefined {
  if (id.length !== 16) return undefined;
  const at = Math.floor(Number(id.readBigUInt64BE(0)) / 1000);
  return at > 0 && at <= LAST_DATE ? at : undefined;
}
