import { countBeforeRedrive } from "../../inspect/before-redrive.ts";
import type { InspectedQueue } from "../../inspect/inspector.ts";
import { messagesIn } from "../../inspect/messages-in.ts";
import { isUnreadable, type Sighting } from "../../inspect/sighting.ts";
import type { Call } from "./call.ts";
import { listedPayload } from "./shown-payload.ts";

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
