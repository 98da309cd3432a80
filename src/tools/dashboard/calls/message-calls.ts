import type { Rescheduled } from "../../../handles/delayed-message.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import {
  changeLetters,
  changeLettersAt,
  deadByReason,
  foldReason,
  type DeadReasons,
} from "../../inspect/dead-reasons.ts";
import { handledIn, lifeOfHandled, type HandledSighting } from "../../inspect/handled.ts";
import { lifeOf } from "../../inspect/life.ts";
import { locate, messagesIn, messagesWith } from "../../inspect/locate.ts";
import {
  countBeforeRedrive,
  isUnreadable,
  type MessageState,
  type Sighting,
} from "../../inspect/sighting.ts";
import { YEAR_9999 } from "../../../queue/checks.ts";
import type { MessageId } from "../../../queue/message/message.ts";
import { HttpError } from "../http/reply.ts";
import { listedPayload, shownPayload, type Call } from "./call.ts";
import { MOST_SORTED, pageOf, sorted, sortOf } from "./sorted.ts";

/** Which messages of a list are wanted. */
interface Wanted {
  readonly state: MessageState | undefined;
  readonly prefix: string;
  /** The reason of dead letters, as it is or folded. */
  readonly reason: string | undefined;
  readonly group: string | undefined;
  /** When they become or became due, at the earliest, and before when (epoch ms). */
  readonly from: number | undefined;
  readonly until: number | undefined;
}

/**
 * `GET queues/:q/messages`: the messages in a `state` in the order in which Redis has them, or those in any state. With
 * `prefix`, those whose keys begin with it; with `reason` and `group`, such dead letters; with `from` and `until`, those
 * that are due then; with `sort`, in the order of a field.
 */
export async function listMessages(call: Call): Promise<unknown> {
  const { wantsPayload } = call;
  const wanted: Wanted = {
    state: call.state,
    prefix: call.value("prefix") ?? "",
    reason: call.value("reason"),
    group: call.value("group"),
    from: call.whole("from", INSTANTS),
    until: call.whole("until", INSTANTS),
  };
  if (wanted.state === undefined && wanted.prefix === "") {
    throw new HttpError(400, "state or prefix must be given");
  }
  const sort = sortOf(call);
  const queue = await call.open();
  const read = async function* (signal: AbortSignal) {
    for await (const seen of messagesOf(queue, wanted, signal)) {
      yield seen && shown(seen, wantsPayload ? listedPayload : undefined);
    }
  };
  const list = JSON.stringify([call.queue, wanted, wantsPayload, sort]);
  const { items, next } = await call.running.readings.page(list, pageOf(call, sort), (signal) =>
    sorted(read(signal), sort),
  );
  return { messages: items, next, ...(sort && { sortedAmong: MOST_SORTED }) };
}

const INSTANTS = { least: 0, most: YEAR_9999 };

async function* messagesOf(
  queue: InspectedQueue,
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<Sighting | undefined, void, void> {
  const { state, prefix, until = Infinity } = wanted;
  const found =
    state === undefined || prefix !== ""
      ? messagesWith(prefix, queue, { signal })
      : messagesIn(queue, state, { signal });
  for await (const seen of found) {
    yield seen && isWanted(seen, wanted) ? seen : undefined;
    // Delayed messages come by deadline.
    if (state === "delayed" && prefix === "" && seen && seen.deadline >= until) return;
  }
}

function isWanted(seen: Sighting, { state, reason, group, from = 0, until = Infinity }: Wanted) {
  return (
    (state === undefined || seen.state === state) &&
    (reason === undefined || seen.reason === reason || foldReason(seen.reason ?? "") === reason) &&
    (group === undefined || seen.group === group) &&
    seen.deadline >= from &&
    seen.deadline < until
  );
}

/**
 * `GET queues/:q/message`: one message by id or key, wherever it is, or that it was handled if its queue remembers that.
 */
export async function locateMessage(call: Call): Promise<unknown> {
  const { idOrKey, wantsPayload, signal } = call;
  const queue = await call.open();
  const { sightings, mayBeReady } = await locate(queue, idOrKey, { signal });
  const handled = sightings.length > 0 ? [] : (await handledIn(queue, idOrKey, { signal })).found;
  const [first, ...others] = [
    ...sightings.map((sighting) => shown(sighting, wantsPayload ? shownPayload : undefined)),
    ...handled.map(shownHandled),
  ];
  return { ...(first ?? GONE), others, mayBeReady };
}

/** A handled message as the page shows it. */
function shownHandled(handled: HandledSighting): object {
  const { queue: _, attempt: attempts, handledAt: __, duration: ___, ...others } = handled;
  return { ...GONE, ...others, state: "handled", attempts, life: lifeOfHandled(handled) };
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
 * `POST queues/:q/messages/change`: makes one change to up to a hundred messages of a list, which `places` name. Counts
 * those that still are where the list showed them; `isDry` only counts.
 */
export async function changeMessages(call: Call): Promise<unknown> {
  const { verb, delay = 0, isDry, signal } = call;
  if (verb === "requeue") throw new HttpError(400, "only the quarantine is requeued");
  const queue = await call.open();
  if (verb === "redrive" || verb === "remove") {
    const { places } = call;
    const count = isDry
      ? await countLetters(queue, places, signal)
      : await changeLettersAt(queue, verb, places, { delay, signal });
    return { count };
  }
  const { messages } = queue;
  const changes = {
    cancel: (id: MessageId) => messages.cancel(id, { signal }),
    promote: async (id: MessageId) => (await messages.promote(id, { signal })) !== undefined,
    reschedule: async (id: MessageId) =>
      (await messages.reschedule(id, delay, { signal })) !== undefined,
  };
  const isThere = async (id: MessageId) => (await messages.get(id, { signal })) !== undefined;
  const change = isDry ? isThere : changes[verb];
  let count = 0;
  for (const id of call.ids) if (await change(id)) count++;
  return { count };
}

/** How many of these letters still exist. Reads the list up to the last of them. */
async function countLetters(
  queue: InspectedQueue,
  places: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const missing = new Set(places);
  for await (const { place } of messagesIn(queue, "dead", { signal })) {
    missing.delete(place);
    if (missing.size === 0) break;
  }
  return new Set(places).size - missing.size;
}

/** The most dead letters whose reasons the page counts: some 60 ms of Redis's time, in short steps. */
const MOST_LETTERS = 20_000;

/** `GET queues/:q/dead/reasons`: the dead letters by reason. */
export async function showReasons(call: Call): Promise<unknown> {
  const { signal } = call;
  let seen: DeadReasons = { groups: [], others: 0, read: 0, total: 0 };
  for await (const next of deadByReason(await call.open(), { most: MOST_LETTERS, signal })) {
    seen = next;
  }
  return seen;
}

/**
 * `POST queues/:q/dead/change`: redrives or removes all dead letters, or those with a `reason` or of a `group`. `isDry`
 * only counts.
 */
export async function changeDead(call: Call): Promise<unknown> {
  const { verb, delay, isDry, letters, signal } = call;
  if (verb !== "redrive" && verb !== "remove") {
    throw new HttpError(400, "verb must be redrive or remove");
  }
  let count = 0;
  const changing = changeLetters(await call.open(), verb, letters, { delay, isDry, signal });
  for await (const { matched, done } of changing) count = isDry ? matched : done;
  return { count };
}
