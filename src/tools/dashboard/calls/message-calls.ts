import type { Rescheduled } from "../../../handles/delayed-message.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { locate, messagesIn, messagesWith } from "../../inspect/locate.ts";
import {
  countBeforeRedrive,
  isUnreadable,
  type MessageState,
  type Sighting,
} from "../../inspect/sighting.ts";
import type { MessageId } from "../../../queue/message/message.ts";
import { HttpError } from "../http/reply.ts";
import { listedPayload, shownPayload, type Call, type Verb } from "./call.ts";

/**
 * `GET queues/:q/messages`: the messages in a `state` in the order in which Redis has them, or those in any state. With
 * `prefix`, those whose keys begin with it.
 */
export async function listMessages(call: Call): Promise<unknown> {
  const { state, wantsPayload } = call;
  const prefix = call.value("prefix") ?? "";
  if (state === undefined && prefix === "")
    throw new HttpError(400, "state or prefix must be given");
  const queue = await call.open();
  const read = async function* (signal: AbortSignal) {
    for await (const seen of messagesOf(queue, state, prefix, signal)) {
      yield seen && shown(seen, wantsPayload ? listedPayload : undefined);
    }
  };
  const list = JSON.stringify([call.queue, state, prefix, wantsPayload]);
  const { items, next } = await call.running.readings.page(list, call.page, read);
  return { messages: items, next };
}

async function* messagesOf(
  queue: InspectedQueue,
  state: MessageState | undefined,
  prefix: string,
  signal: AbortSignal,
): AsyncGenerator<Sighting | undefined, void, void> {
  const found =
    state === undefined || prefix !== ""
      ? messagesWith(prefix, queue, { signal })
      : messagesIn(queue, state, { signal });
  for await (const seen of found) yield seen && isIn(state, seen) ? seen : undefined;
}

function isIn(state: MessageState | undefined, seen: Sighting): boolean {
  return state === undefined || seen.state === state;
}

/** `GET queues/:q/message`: one message by id or key, wherever it is. */
export async function locateMessage(call: Call): Promise<unknown> {
  const { idOrKey, wantsPayload, signal } = call;
  const { sightings, mayBeReady } = await locate(await call.open(), idOrKey, { signal });
  const [first, ...others] = sightings.map((sighting) =>
    shown(sighting, wantsPayload ? shownPayload : undefined),
  );
  return { ...(first ?? GONE), others, mayBeReady };
}

/** A message as the page shows it, with its payload if `open` makes it readable. */
function shown(sighting: Sighting, open?: (bytes: Uint8Array) => unknown): object {
  const { queue: _, payload, trailer: __, headers = {}, ...others } = sighting;
  return {
    ...others,
    isUnreadable: isUnreadable(sighting),
    beforeRedrive: countBeforeRedrive(sighting),
    headers,
    ...(open && { payload: open(payload) }),
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
  readyAt: null,
  takenAt: null,
  heldBackUntil: null,
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

/**
 * `POST queues/:q/messages/change`: makes one change to up to a hundred messages of a list. Counts those that still are
 * where the list showed them; `isDry` only counts.
 */
export async function changeMessages(call: Call): Promise<unknown> {
  const { ids, verb, delay = 0, isDry, signal } = call;
  const queue = await call.open();
  const { messages, deadLetters } = queue;
  const isThere = async (id: MessageId) => {
    if (verb !== "redrive" && verb !== "remove")
      return (await messages.get(id, { signal })) !== undefined;
    const { sightings } = await locate(queue, id, { signal });
    return sightings.some(({ state }) => state === "dead");
  };
  const changes: Record<Verb, (id: MessageId) => Promise<boolean>> = {
    cancel: (id) => messages.cancel(id, { signal }),
    promote: async (id) => (await messages.promote(id, { signal })) !== undefined,
    reschedule: async (id) => (await messages.reschedule(id, delay, { signal })) !== undefined,
    redrive: async (id) => ((await deadLetters?.redrive(id, { delay, signal })) ?? 0) > 0,
    remove: async (id) => (await deadLetters?.remove(id, { signal })) ?? false,
  };
  const change = isDry ? isThere : changes[verb];
  let count = 0;
  for (const id of ids) if (await change(id)) count++;
  return { count };
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
