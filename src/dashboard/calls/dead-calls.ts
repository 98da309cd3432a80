import type { DeadLetter, DeadLetters } from "../../reliable/dead-letters.ts";
import { countBeforeRedrive } from "../../inspect/before-redrive.ts";
import type { Call } from "./call.ts";
import { listedPayload } from "./shown-payload.ts";

/** `GET queues/:q/dead`: the dead letters, oldest first. */
export async function showDead(call: Call): Promise<unknown> {
  const withPayload = call.wantsPayload;
  const what = `dead ${withPayload} ${call.queue}`;
  const { deadLetters } = await call.open();
  const read = () => lettersOf(deadLetters, withPayload);
  const { items, next } = await call.running.readings.page(what, call.part, read);
  return { letters: items, next };
}

async function* lettersOf(
  letters: DeadLetters<Uint8Array> | undefined,
  withPayload: boolean,
): AsyncGenerator<unknown, void, void> {
  if (letters === undefined) return;
  for await (const letter of letters) yield shown(letter, withPayload);
}

function shown(letter: DeadLetter<Uint8Array>, withPayload: boolean): unknown {
  const { id, key, group, attempt, reason, failures, diedAt, bytes } = letter;
  return {
    id,
    key,
    group,
    attempts: attempt,
    reason,
    failures,
    beforeRedrive: countBeforeRedrive({ failures, attempts: attempt, state: "dead" }),
    diedAt: diedAt.getTime(),
    size: bytes.length,
    ...(withPayload && { payload: listedPayload(bytes) }),
  };
}

/** `POST queues/:q/dead/redrive`: delivered again. */
export async function redriveDead(call: Call): Promise<unknown> {
  const { idOrAll, delay = 0, signal } = call;
  const { deadLetters } = await call.open();
  return { count: (await deadLetters?.redrive(idOrAll, { delay, signal })) ?? 0 };
}

/** `POST queues/:q/dead/remove`: gone for good. */
export async function removeDead(call: Call): Promise<unknown> {
  const { idOrAll, signal } = call;
  const { deadLetters } = await call.open();
  if (deadLetters === undefined) return { count: 0 };
  if (idOrAll === "all") return { count: await deadLetters.clear({ signal }) };
  return { count: (await deadLetters.remove(idOrAll, { signal })) ? 1 : 0 };
}
