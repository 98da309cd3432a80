import type { FailedAttempt, MessageHeaders, MessageId, Stage } from "../../index.ts";
import {
  LAST_DATE,
  consumerNames,
  ids,
  trailers,
  type Content,
  type Place,
  plannedTick,
} from "../../inside.ts";
import { PLACE_NAMES } from "./places.ts";

/** The state of a message that has an id: its place. */
export type MessageState = Exclude<Place, "quarantined">;

/** The states of messages. */
export const MESSAGE_STATES = PLACE_NAMES.filter(
  (name): name is MessageState => name !== "quarantined",
);

/** A message, and where it was seen. In a reliable queue each group can have it in another state. */
export interface Sighting {
  readonly state: MessageState;
  /** Whether it is delayed, is due, and waits for its turn in a flow. Known only where one message was looked for. */
  readonly isWaiting: boolean;
  /** The queue's name. */
  readonly queue: string;
  /** The number of the partition; undefined in an ordinary queue, -1 while an ordinary queue is being partitioned. */
  readonly partition: number | undefined;
  readonly id: MessageId;
  /** Where exactly it is: the partition, and there its entry or its id. Changes whenever the message moves on. */
  readonly place: string;
  readonly key: string | undefined;
  readonly headers: MessageHeaders | undefined;
  /** The payload as stored. */
  readonly payload: Buffer;
  /** The trailer as stored: key, headers and failures. */
  readonly trailer: Buffer;
  /** The lane in which it waits for its turn once it is due, and its priority there, if it was offered with them. */
  readonly lane: string | undefined;
  readonly priority: number | undefined;
  /** The size of the payload in bytes. */
  readonly size: number;
  /** When it is or was due (epoch ms). While it is retrying, when its next attempt is due. */
  readonly deadline: number;
  /**
   * When it was offered or last rescheduled (epoch ms); undefined if its id does not show that, such as an id of Java, or
   * that of a message which a schedule has placed ahead.
   */
  readonly offeredAt: number | undefined;
  /** The schedule that has placed it, and for which tick (epoch ms). */
  readonly schedule: string | undefined;
  readonly tick: number | undefined;
  /** How many deliveries were made, including the one in flight unless that is held back. */
  readonly attempts: number;
  /** The last ten failed attempts, oldest first, including those before a redrive. */
  readonly failures: readonly FailedAttempt[];
  /** The group that it is for; undefined if it is for all groups. */
  readonly group: string | undefined;
  /** When it last became ready (epoch ms), if it is ready or in flight, and not held back. */
  readonly readyAt: number | undefined;
  /**
   * When its next attempt may begin (epoch ms), if it has failed in strict order: its consumer keeps it in flight until
   * then.
   */
  readonly heldBackUntil: number | undefined;
  /** The consumer that holds it, if it is in flight. */
  readonly consumer: string | undefined;
  /** When its consumer got it (epoch ms), if it is in flight and does not wait for its turn in strict order. */
  readonly takenAt: number | undefined;
  /** The host and the process of its consumer, if that is one of this library. */
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** Why it died, if it is dead. */
  readonly reason: string | undefined;
  /** When it died (epoch ms), if it is dead. */
  readonly diedAt: number | undefined;
}

/** A message as the ZSET of its place holds it. */
interface Member {
  readonly deadline: number;
  readonly member: Buffer;
  /** Defaults to delayed. */
  readonly place?: "delayed" | "waiting" | "retrying";
}

/** The queue and partition of a sighting. */
interface Origin {
  readonly queue: string;
  readonly partition: number | undefined;
}

/** Makes a sighting of a message that keeps the form of a delayed one; undefined if its layout is unknown. */
export function sightDelayed(
  origin: Origin,
  { deadline, member, place }: Member,
): Sighting | undefined {
  const found = ids.unpackMember(member);
  if (found === undefined) return undefined;
  const { payload } = found;
  const trailer = member.subarray(payload.byteOffset - member.byteOffset + payload.length);
  const id = ids.formatMessageId(deadline, found.id);
  const isWaiting = place === "waiting";
  const seen = sightMessage(
    origin,
    { ...found, id, deadline, trailer },
    isWaiting ? "delayed" : place,
  );
  return { ...seen, isWaiting };
}

/** Makes a sighting of a delayed message that a queue handle returned. */
export function sightMessage(
  origin: Origin,
  message: Pick<Sighting, "id" | "key" | "headers" | "payload" | "trailer" | "deadline"> &
    Partial<Pick<Sighting, "lane" | "priority">>,
  state: MessageState = "delayed",
): Sighting {
  const { id, key, headers, payload, trailer, lane, priority, deadline } = message;
  return {
    ...origin,
    ...ABSENT,
    state,
    id,
    place: spotAt(origin.partition, id),
    key,
    headers,
    payload,
    trailer,
    lane,
    priority,
    size: payload.length,
    deadline,
    ...originOf(id, key),
    attempts: 0,
    failures: trailers.failuresIn(trailer),
  };
}

/** Makes a sighting of a message in a reliable queue that is not delayed. */
export function sight(origin: Origin, content: Content): Sighting {
  const { address, payload, trailer, due, entryId, ...others } = content;
  const { key, headers, lane, priority } = trailers.unpackTrailer(trailer);
  const id = ids.messageIdAt(address);
  return {
    ...origin,
    ...ABSENT,
    ...others,
    ...consumerNames.processOf(others.consumer ?? ""),
    id,
    place: spotAt(origin.partition, entryId ?? id),
    key,
    headers,
    payload,
    trailer,
    lane,
    priority,
    size: payload.length,
    failures: trailers.failuresIn(trailer),
    deadline: due ?? Number(id.slice(0, id.lastIndexOf("-"))),
    ...originOf(id, key),
  };
}

/** The stage of a message, as `stage` and `revoke` of a reliable queue name it. */
export function stageOf({ state, isWaiting, takenAt, attempts }: Sighting): Stage {
  if (isWaiting) return "waiting";
  if (state !== "in flight") return state;
  if (takenAt !== undefined) return "running";
  // What a consumer has not been handed yet waits behind a failed message, or for its own next attempt.
  return attempts > 0 ? "retrying" : "ready";
}

function spotAt(partition: number | undefined, name: string): string {
  return `${partition ?? ""}:${name}`;
}

/** The entry of a stream in a {@link Sighting.place}; undefined for one in another partition, and for any other text. */
export function entryAt(spot: string, partition: number | undefined): string | undefined {
  const [, at, entry] = /^(|-1|\d{1,3}):(\d{1,19}-\d{1,19})$/.exec(spot) ?? [];
  return at === String(partition ?? "") ? entry : undefined;
}

/**
 * Whether a dead letter has an unknown layout: it can be removed, but not redriven. A handler can reject a message with
 * the same reason, "unreadable". But only the made-up id of an unreadable letter begins with the time of its death.
 */
export function isUnreadable({ reason, deadline, diedAt }: Sighting): boolean {
  return reason === "unreadable" && deadline === diedAt;
}

/** The fields that a state does not have. */
const ABSENT = {
  isWaiting: false,
  group: undefined,
  readyAt: undefined,
  heldBackUntil: undefined,
  consumer: undefined,
  takenAt: undefined,
  host: undefined,
  pid: undefined,
  reason: undefined,
  diedAt: undefined,
} as const;

/** When a message was offered, or which schedule has placed it, as its id and its key tell. */
export function originOf(
  messageId: MessageId,
  key: string | undefined,
): Pick<Sighting, "offeredAt" | "schedule" | "tick"> {
  const id = ids.parseMessageId(messageId).subarray(8);
  const planned = plannedTick(key ?? "", id);
  // The id of a planned message is computed, as if it was offered at its tick.
  return planned === undefined
    ? { offeredAt: stampIn(id), schedule: undefined, tick: undefined }
    : { offeredAt: undefined, ...planned };
}

function stampIn(id: Buffer): number | undefined {
  if (id.length !== 16) return undefined;
  const at = Math.floor(Number(id.readBigUInt64BE(0)) / 1000);
  return at > 0 && at <= LAST_DATE ? at : undefined;
}

/**
 * How many of a message's failures, oldest first, happened before its last redrive. A redrive makes its attempts count
 * from 1 again.
 */
export function countBeforeRedrive({
  failures,
  attempts,
  state,
  heldBackUntil,
}: Pick<Sighting, "failures" | "attempts" | "state"> &
  Partial<Pick<Sighting, "heldBackUntil">>): number {
  // The current attempt of a message in flight has not failed. One that is held back has none.
  const last = state === "in flight" && heldBackUntil === undefined ? attempts - 1 : attempts;
  return (
    failures.findLastIndex(
      ({ attempt }, i) => attempt > last || attempt >= (failures[i + 1]?.attempt ?? Infinity),
    ) + 1
  );
}
