import type { DelayedMessage } from "../../../index.ts";
import { droppedIn, lifeOfDropped, type DroppedSighting } from "../../view/activity.ts";
import { deadByReason, type DeadReasons } from "../../view/dead-reasons.ts";
import { handledIn, lifeOfHandled, type HandledSighting } from "../../view/handled.ts";
import { lifeOf } from "../../view/life.ts";
import { countGroups, locate } from "../../view/locate.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { countBeforeRedrive, isUnreadable, type Sighting } from "../../view/sighting.ts";
import { HttpError } from "../http/reply.ts";
import { rowPayload, shownPayload, type ApiCall } from "./api-call.ts";
import { MOST_SORTED, pageOf, sorted, sortOf } from "./sorted.ts";
import { messagesOf, wantedOf } from "./wanted.ts";

/**
 * `GET queues/:q/messages`: the messages in a `state` in the order in which Redis has them, or those in any state. With
 * `prefix`, those whose keys begin with it; with `reason` and `group`, such dead letters; with `from` and `until`, those
 * that are due then; with `text`, those whose payloads contain it; with `sort`, in the order of a field. Beside messages that
 * are in a group it says how many `groups` the queue has; `looked`: how many messages a search has gone through up to here,
 * if it goes through them one by one.
 */
export async function listMessages(call: ApiCall): Promise<unknown> {
  const { wantsPayload } = call;
  const wanted = wantedOf(call);
  const { state } = wanted;
  if (state === "quarantined" || (state === undefined && wanted.prefix === "")) {
    throw new HttpError(400, "prefix, or the state of messages with ids, must be given");
  }
  const sort = sortOf(call);
  const queue = await call.open();
  const read = async function* (signal: AbortSignal) {
    for await (const seen of messagesOf(queue, state, wanted, signal)) {
      yield seen && shown(seen, wantsPayload ? rowPayload : undefined);
    }
  };
  const list = JSON.stringify([call.queue, wanted, wantsPayload, sort]);
  const { items, next, looked } = await call.running.readings.page(
    list,
    pageOf(call, sort),
    (signal) => sorted(read(signal), sort),
  );
  const { signal } = call;
  const groups = state === "delayed" ? undefined : await countGroups(queue, { signal });
  return {
    messages: items,
    next,
    groups,
    ...(wanted.prefix === "" && { looked }),
    ...(sort && { sortedAmong: MOST_SORTED }),
  };
}

/**
 * `GET queues/:q/message`: one message by id or key, wherever it is, or that it was handled, or dropped when it was due, if
 * its queue remembers that.
 */
export async function locateMessage(call: ApiCall): Promise<unknown> {
  const { idOrKey, wantsPayload, signal } = call;
  const queue = await call.open();
  const { sightings, mayBeReady } = await locate(queue, idOrKey, { signal });
  const isGone = sightings.length === 0;
  const handled = isGone ? (await handledIn(queue, idOrKey, { signal })).found : [];
  const dropped = isGone ? await droppedIn(queue, idOrKey, { signal }) : undefined;
  const [first, ...others] = [
    ...sightings.map((sighting) => shown(sighting, wantsPayload ? shownPayload : undefined)),
    ...handled.map(shownHandled),
    ...(dropped === undefined ? [] : [shownDropped(dropped)]),
  ];
  return { ...(first ?? GONE), others, mayBeReady };
}

/** A handled message as the page shows it. */
function shownHandled(handled: HandledSighting): object {
  const { queue: _, attempt: attempts, handledAt: __, duration: ___, ...others } = handled;
  return { ...GONE, ...others, state: "handled", attempts, life: lifeOfHandled(handled) };
}

/** A message that was dropped when it was due, as the page shows it. */
function shownDropped(dropped: DroppedSighting): object {
  const { id, key, why } = dropped;
  return {
    ...GONE,
    id,
    key: key ?? null,
    state: "dropped",
    reason: why,
    life: lifeOfDropped(dropped),
  };
}

/** A message as the page shows it, with its payload if `open` makes it readable. */
function shown(sighting: Sighting, open?: (bytes: Uint8Array) => unknown): object {
  const { queue: _, payload, trailer: __, headers = {}, ...others } = sighting;
  return {
    ...others,
    isUnreadable: isUnreadable(sighting),
    beforeRedrive: countBeforeRedrive(sighting),
    headers,
    life: lifeOf(sighting),
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
  schedule: null,
  tick: null,
  lane: null,
  priority: null,
  attempts: 0,
  isUnreadable: false,
  failures: [],
  life: [],
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
export async function cancel(call: ApiCall): Promise<unknown> {
  const { id } = call;
  return { done: await (await call.open()).messages.cancel(id, { signal: call.signal }) };
}

/** `POST queues/:q/message/reschedule`: makes a message due `delay` milliseconds from now. */
export async function reschedule(call: ApiCall): Promise<unknown> {
  const { id, delay } = call;
  if (delay === undefined) throw new HttpError(400, "delay must be given");
  const { messages } = await call.open();
  return moved(await messages.reschedule(id, delay, { signal: call.signal }));
}

/** `POST queues/:q/message/promote`: makes a message due now. */
export async function promote(call: ApiCall): Promise<unknown> {
  const { id } = call;
  return moved(await (await call.open()).messages.promote(id, { signal: call.signal }));
}

/**
 * `POST queues/:q/message/revoke`: stops a message of a reliable queue wherever it is, for the `reason`; `isDry` only looks. Says
 * in which `stage` it was, in which `places`, and which consumers had it since when (`running`).
 */
export async function revoke(call: ApiCall): Promise<unknown> {
  const { id, reason, isDry, signal } = call;
  const { reliable, ...queue } = await openReliable(call);
  if (!isDry) {
    const revoked = await reliable.revoke(id, { signal, ...(reason && { reason }) });
    const { stage } = revoked;
    const detail = `${id}, ${stage}${reason === undefined ? "" : `: ${reason}`}`;
    if (stage !== "gone") await queue.inside.note({ what: "revoked", count: 1, detail });
    return revoked;
  }
  const { stage, places, hasEnded } = await reliable.stage(id, { signal });
  const isRunning = places.some((place) => place.stage === "running");
  const { sightings } = isRunning
    ? await locate({ ...queue, reliable }, id, { signal })
    : { sightings: [] };
  const running = sightings
    .filter(({ takenAt }) => takenAt !== undefined)
    .map(({ group, consumer, host, pid, takenAt }) => ({ group, consumer, host, pid, takenAt }));
  return { stage, places, hasEnded, running };
}

/**
 * Opens a queue whose messages can be revoked.
 *
 * @throws {HttpError} 400 if it is plain.
 */
export async function openReliable(
  call: ApiCall,
): Promise<InspectedQueue & { readonly reliable: NonNullable<InspectedQueue["reliable"]> }> {
  const queue = await call.open();
  const { reliable } = queue;
  if (reliable !== undefined) return { ...queue, reliable };
  throw new HttpError(400, "the queue is plain: its messages are gone once they are taken");
}

function moved(message: Pick<DelayedMessage<unknown>, "id" | "deadline"> | undefined): unknown {
  return message ?? { done: false };
}

/** The most dead letters whose reasons the page counts: some 60 ms of Redis's time, in short steps. */
const MOST_LETTERS = 20_000;

/** `GET queues/:q/dead/reasons`: the dead letters by reason. */
export async function showReasons(call: ApiCall): Promise<unknown> {
  const { signal } = call;
  let seen: DeadReasons = { groups: [], others: 0, read: 0, total: 0 };
  for await (const next of deadByReason(await call.open(), { most: MOST_LETTERS, signal })) {
    seen = next;
  }
  return seen;
}
