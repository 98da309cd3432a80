import type { CallOptions } from "../../index.ts";
import { PLACES, type Activity, type Place, type Verb } from "../../inside.ts";
import { changeQuarantined } from "./bare.ts";
import { changeLettersAt } from "./dead-reasons.ts";
import type { InspectedQueue } from "./inspector.ts";
import { messagesIn } from "./locate.ts";

// What people can do with messages, for every face: each change counts those that were still there.

/** A change to the messages in a state of a queue. */
export interface MessageChange {
  readonly queue: InspectedQueue;
  readonly state: Place;
  readonly verb: Verb;
  /** How long they are to wait then (ms). */
  readonly delay: number;
  /** Why they are revoked. */
  readonly reason?: string | undefined;
  /** Whether to count only. */
  readonly isDry: boolean;
}

/** A message chosen in a list: its id, or its spot (`place`) if it has none. */
export interface Chosen {
  readonly id?: string | undefined;
  readonly place?: string | undefined;
}

/** Whether a verb fits a state. */
export function isChange(state: Place | undefined, verb: Verb): state is Place {
  const verbs: readonly Verb[] = state === undefined ? [] : PLACES[state].verbs;
  return verbs.includes(verb);
}

/** Makes a change to some messages, or to the whole quarantine; returns how many were still there. */
export async function changeChosen(
  { queue, state, verb, delay, reason, isDry }: MessageChange,
  chosen: readonly Chosen[] | undefined,
  call?: CallOptions,
): Promise<number> {
  const spots = chosen?.flatMap(({ place }) => place ?? []);
  if (state === "quarantined") {
    return await changeQuarantined(queue, verb as "requeue" | "remove", spots, { isDry, ...call });
  }
  if (state === "dead") {
    return isDry
      ? await countLetters(queue, spots ?? [], call)
      : await changeLettersAt(queue, verb as "redrive" | "remove", spots ?? [], { delay, ...call });
  }
  const wanted = chosen?.flatMap(({ id }) => id ?? []) ?? [];
  if (verb === "revoke") {
    const { reliable } = queue;
    if (reliable === undefined) throw new TypeError(`queue "${queue.name}" is plain`);
    const stop = (id: string) =>
      isDry
        ? reliable.stage(id, call)
        : reliable.revoke(id, { ...call, ...(reason && { reason }) });
    const found = await Promise.all([...new Set(wanted)].map(stop));
    return found.filter(({ stage }) => stage !== "gone").length;
  }
  const of = { delay, isDry, ...call };
  return await changeWaiting(queue, verb as "cancel" | "promote" | "reschedule", wanted, of);
}

/**
 * Notes in the log of a queue that a change was made to so many chosen messages; `detail` says to which ones. The log has no
 * word for messages that were only made due earlier or later. Never rejects.
 */
export async function noteChange(
  { queue, state, verb, isDry }: MessageChange,
  count: number,
  detail?: string,
): Promise<void> {
  const what = state === "quarantined" && verb === "remove" ? "quarantine cleared" : DEEDS[verb];
  if (!isDry && what !== undefined) await queue.inside.note({ what, count, detail });
}

const DEEDS: Partial<Record<Verb, Activity["what"]>> = {
  cancel: "cancelled",
  revoke: "revoked",
  redrive: "redriven",
  remove: "letters removed",
  requeue: "requeued",
};

/** Changes delayed and retrying messages, by their ids or keys; returns how many there were. */
export async function changeWaiting(
  { messages }: InspectedQueue,
  verb: "cancel" | "promote" | "reschedule",
  idsOrKeys: readonly string[],
  { delay = 0, isDry = false, ...call }: CallOptions & { delay?: number; isDry?: boolean } = {},
): Promise<number> {
  const wanted = [...new Set(idsOrKeys)];
  const isDone = async (idOrKey: string) => {
    if (isDry) return (await messages.get(idOrKey, call)) !== undefined;
    const moved =
      verb === "promote"
        ? messages.promote(idOrKey, call)
        : messages.reschedule(idOrKey, delay, call);
    return (await moved) !== undefined;
  };
  const size = verb === "cancel" && !isDry ? CANCELLED_AT_ONCE : AT_ONCE;
  let count = 0;
  for (let i = 0; i < wanted.length; i += size) {
    const some = wanted.slice(i, i + size);
    const done =
      verb === "cancel" && !isDry
        ? await messages.cancelMany(some, call)
        : await Promise.all(some.map(isDone));
    count += done.filter(Boolean).length;
  }
  return count;
}

/** How many messages are changed at the same time, each by a script of its own. */
const AT_ONCE = 20;

/** How many messages are cancelled in one call. */
const CANCELLED_AT_ONCE = 500;

/** How many of these letters still exist. Reads the list up to the last of them. */
async function countLetters(
  queue: InspectedQueue,
  spots: readonly string[],
  call: CallOptions | undefined,
): Promise<number> {
  const missing = new Set(spots);
  for await (const { place } of messagesIn(queue, "dead", call)) {
    missing.delete(place);
    if (missing.size === 0) break;
  }
  return new Set(spots).size - missing.size;
}
