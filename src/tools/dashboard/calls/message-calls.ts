import type { Rescheduled } from "../../../handles/delayed-message.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { locate, messagesIn, messagesWith } from "../../inspect/locate.ts";
import {
  countBeforeRedrive,
  isUnreadable,
  type MessageState,
  type Sighting,
} from "../../inspect/sighting.ts";
import { HttpError } from "../http/reply.ts";
import { listedPayload, shownPayload, type Call } from "./call.ts";

/** A message in a list. */
interface ListedMessage {
  readonly id: string;
  readonly key: string | undefined;
  readonly deadline: number;
  readonly state: MessageState;
  /** The group that it is for; undefined if it is for all groups. */
  readonly group: string | undefined;
}

/** What a list shows of a message. A message without a state is delayed. */
type Listable = Pick<Sighting, "id" | "key" | "deadline"> &
  Partial<Pick<Sighting, "state" | "group">>;

/**
 * `GET queues/:q/messages`: all delayed messages by deadline, or those in any state whose keys begin with `prefix`, in no
 * order.
 */
export async function findMessages(call: Call): Promise<unknown> {
  const prefix = call.value("prefix") ?? "";
  const list = `messages ${call.queue} ${prefix}`;
  const queue = await call.open();
  const read = (signal: AbortSignal) =>
    prefix === "" ? allByDeadline(queue.messages, signal) : withPrefix(prefix, queue, signal);
  const { items, next } = await call.running.readings.page(list, call.page, read);
  return { messages: items, next };
}

async function* allByDeadline(
  messages: InspectedQueue["messages"],
  signal: AbortSignal,
): AsyncGenerator<ListedMessage, void, void> {
  for await (const message of messages.soonest(undefined, { signal })) yield listed(message);
}

async function* withPrefix(
  prefix: string,
  queue: InspectedQueue,
  signal: AbortSignal,
): AsyncGenerator<ListedMessage | undefined, void, void> {
  for await (const seen of messagesWith(prefix, queue, { signal })) {
    yield seen && listed(seen);
  }
}

function listed({ id, key, deadline, ...seen }: Listable): ListedMessage {
  return { id, key, deadline, state: seen.state ?? "delayed", group: seen.group };
}

/** `GET queues/:q/message`: one message by id or key, wherever it is. */
export async function locateMessage(call: Call): Promise<unknown> {
  const { idOrKey, wantsPayload, signal } = call;
  const { sightings, mayBeReady } = await locate(await call.open(), idOrKey, { signal });
  const [first, ...others] = sightings.map((sighting) => located(sighting, wantsPayload));
  return { ...(first ?? GONE), others, mayBeReady };
}

/** `GET queues/:q/in-flight`: the messages in flight, group by group and oldest first in each. */
export async function showInFlight(call: Call): Promise<unknown> {
  const queue = await call.open();
  const read = async function* (signal: AbortSignal) {
    for await (const seen of messagesIn(queue, "in flight", { signal })) yield shownInFlight(seen);
  };
  const list = `in flight ${call.queue}`;
  const { items, next } = await call.running.readings.page(list, call.page, read);
  return { messages: items, next };
}

function shownInFlight(seen: Sighting): unknown {
  const { id, key, group, attempts, takenAt: since, host, pid, consumer, partition } = seen;
  return { id, key, group, attempts, since, host, pid, consumer, partition };
}

/** A message as the page shows it. */
function located(sighting: Sighting, withPayload: boolean): object {
  const { queue: _, payload, trailer: __, headers = {}, readyAt, takenAt, ...others } = sighting;
  return {
    ...others,
    isUnreadable: isUnreadable(sighting),
    beforeRedrive: countBeforeRedrive(sighting),
    headers,
    since: takenAt ?? readyAt,
    ...(withPayload && { payload: shownPayload(payload) }),
  };
}

/** The reply for a message that was not found. */
const GONE = {
  state: "gone",
  id: null,
  key: null,
  headers: {},
  deadline: null,
  offeredAt: null,
  attempts: 0,
  isUnreadable: false,
  failures: [],
  beforeRedrive: 0,
  consumer: null,
  host: null,
  pid: null,
  since: null,
  reason: null,
  group: null,
  diedAt: null,
  size: null,
  partition: null,
};

/** `POST queues/:q/message/cancel`. */
export async function cancel(call: Call): Promise<unknown> {
  const { id } = call;
  return { done: await (await call.open()).messages.cancel(id, { signal: call.signal }) };
}

/** `POST queues/:q/message/reschedule`: makes a message due `delay` milliseconds from now. */
export async function reschedule(call: Call): Promise<unknown> {
  const { id, delay } = call;
  if (delay === undefined) throw new HttpError(400, "delay must be given");
  const { messages } = await call.open();
  return moved(await messages.reschedule(id, delay, { signal: call.signal }));
}

/** `POST queues/:q/message/promote`: makes a message due now. */
export async function promote(call: Call): Promise<unknown> {
  const { id } = call;
  return moved(await (await call.open()).messages.promote(id, { signal: call.signal }));
}

function moved(message: Rescheduled | undefined): unknown {
  return message ?? { done: false };
}

/** `GET queues/:q/dead`: the dead letters, partition by partition and oldest first in each. */
export async function showDead(call: Call): Promise<unknown> {
  const withPayload = call.wantsPayload;
  const list = `dead ${withPayload} ${call.queue}`;
  const queue = await call.open();
  const read = (signal: AbortSignal) => lettersOf(queue, withPayload, signal);
  const { items, next } = await call.running.readings.page(list, call.page, read);
  return { letters: items, next };
}

async function* lettersOf(
  queue: InspectedQueue,
  withPayload: boolean,
  signal: AbortSignal,
): AsyncGenerator<unknown, void, void> {
  for await (const letter of messagesIn(queue, "dead", { signal })) {
    yield shownLetter(letter, withPayload);
  }
}

function shownLetter(letter: Sighting, withPayload: boolean): unknown {
  const { id, key, group, attempts, reason, failures, diedAt, size, payload } = letter;
  return {
    id,
    key,
    group,
    attempts,
    reason,
    isUnreadable: isUnreadable(letter),
    failures,
    beforeRedrive: countBeforeRedrive(letter),
    diedAt,
    size,
    ...(withPayload && { payload: listedPayload(payload) }),
  };
}

/** `POST queues/:q/dead/redrive`: delivers one dead letter, or all, again. */
export async function redriveDead(call: Call): Promise<unknown> {
  const { idOrAll, delay = 0, signal } = call;
  const { deadLetters } = await call.open();
  return { count: (await deadLetters?.redrive(idOrAll, { delay, signal })) ?? 0 };
}

/** `POST queues/:q/dead/remove`: deletes one dead letter, or all, for good. */
export async function removeDead(call: Call): Promise<unknown> {
  const { idOrAll, signal } = call;
  const { deadLetters } = await call.open();
  if (deadLetters === undefined) return { count: 0 };
  if (idOrAll === "all") return { count: await deadLetters.clear({ signal }) };
  return { count: (await deadLetters.remove(idOrAll, { signal })) ? 1 : 0 };
}

/** `GET queues/:q/quarantine`: how many entries the quarantine has, and the first of them. */
export async function showQuarantine(call: Call): Promise<unknown> {
  const { signal, wantsPayload } = call;
  const { limit } = call.page;
  const { quarantine } = (await call.open()).messages;
  const items: unknown[] = [];
  for await (const bytes of quarantine) {
    items.push({ size: bytes.length, ...(wantsPayload && { payload: listedPayload(bytes) }) });
    if (items.length >= limit) break;
  }
  return { size: await quarantine.size({ signal }), items };
}

/** `POST queues/:q/quarantine/requeue`: makes the payloads in quarantine ready again. */
export async function requeueQuarantine(call: Call): Promise<unknown> {
  const { messages } = await call.open();
  return { count: await messages.quarantine.requeue(undefined, { signal: call.signal }) };
}

/** `POST queues/:q/quarantine/remove`: deletes everything in quarantine for good. */
export async function removeQuarantine(call: Call): Promise<unknown> {
  const { messages } = await call.open();
  return { count: await messages.quarantine.clear({ signal: call.signal }) };
}
