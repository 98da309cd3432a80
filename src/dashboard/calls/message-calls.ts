import type { DelayedMessage, Rescheduled } from "../../delayed/delayed-message.ts";
import { Lookup } from "../../delayed/lookup.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { countBeforeRedrive } from "../../inspect/before-redrive.ts";
import { locate } from "../../inspect/locate.ts";
import { isUnreadable, type Sighting } from "../../inspect/sighting.ts";
import { placesOf } from "../../queue/queue-handle.ts";
import type { Call } from "./call.ts";
import { HttpError } from "../http/http-error.ts";
import { shownPayload } from "./shown-payload.ts";

interface Found {
  readonly id: string;
  readonly key: string | undefined;
  readonly deadline: number;
}

/** `GET queues/:q/messages`: delayed messages, those with a prefix or all by their deadlines. */
export async function findMessages(call: Call): Promise<unknown> {
  const prefix = call.value("prefix") ?? "";
  const what = `messages ${call.queue} ${prefix}`;
  const { messages } = await call.open();
  const read = (signal: AbortSignal) =>
    prefix === ""
      ? foundOf(messages.soonest(undefined, { signal }))
      : foundWith(prefix, messages, signal);
  const { items, next } = await call.running.readings.page(what, call.part, read);
  return { messages: items, next };
}

async function* foundOf(
  messages: AsyncIterable<DelayedMessage<Uint8Array>>,
): AsyncGenerator<Found, void, void> {
  for await (const { id, key, deadline } of messages) yield { id, key, deadline };
}

/** The messages whose keys begin with the prefix. Undefined after each step, also if it has found nothing. */
async function* foundWith(
  prefix: string,
  messages: InspectedQueue["messages"],
  signal: AbortSignal,
): AsyncGenerator<Found | undefined, void, void> {
  const seen = new Set<string>();
  for (const { queue } of await placesOf(messages).all(signal)) {
    for await (const keys of new Lookup(queue).keysWith(prefix, signal)) {
      const others = keys.filter((key) => !seen.has(key));
      for (let i = 0; i < others.length; i += STEP) {
        const some = others.slice(i, i + STEP);
        const found = await Promise.all(some.map((key) => messages.get(key, { signal })));
        for (const key of some) seen.add(key);
        for (const message of found) {
          if (message !== undefined) {
            yield { id: message.id, key: message.key, deadline: message.deadline };
          }
        }
      }
      yield undefined;
    }
  }
}

/** Messages that are asked for at once. */
const STEP = 20;

/** `GET queues/:q/message`: one message, by its id or its key, wherever it is. */
export async function locateMessage(call: Call): Promise<unknown> {
  const { idOrKey, wantsPayload, signal } = call;
  const { sightings, mayBeReady } = await locate(await call.open(), idOrKey, { signal });
  const { now } = call.running.sampler;
  const [first, ...others] = sightings.map((sighting) => located(sighting, now, wantsPayload));
  return { ...(first ?? GONE), others, mayBeReady };
}

/** A message as the page shows it. */
function located(sighting: Sighting, now: number, withPayload: boolean): object {
  const { queue: _, payload, trailer: __, headers = {}, readyAt, heldFor, ...others } = sighting;
  const since = heldFor === undefined ? readyAt : now - heldFor;
  return {
    ...others,
    isUnreadable: isUnreadable(sighting),
    beforeRedrive: countBeforeRedrive(sighting),
    headers,
    since,
    ...(withPayload && { payload: shownPayload(payload) }),
  };
}

/** What is said of a message that is nowhere. */
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

/** `POST queues/:q/message/reschedule`: `delay` milliseconds from now. */
export async function reschedule(call: Call): Promise<unknown> {
  const { id, delay } = call;
  if (delay === undefined) throw new HttpError(400, "delay must be given");
  const { messages } = await call.open();
  return moved(await messages.reschedule(id, delay, { signal: call.signal }));
}

/** `POST queues/:q/message/promote`: due now. */
export async function promote(call: Call): Promise<unknown> {
  const { id } = call;
  return moved(await (await call.open()).messages.promote(id, { signal: call.signal }));
}

function moved(message: Rescheduled | undefined): unknown {
  return message ?? { done: false };
}
