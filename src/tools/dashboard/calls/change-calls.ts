import { MOST_BARE } from "../../view/bare.ts";
import { isUnreadable } from "../../view/sighting.ts";
import { PLACES, type LetterFilter, type Place, type Verb } from "../../../inside.ts";
import { HttpError } from "../http/reply.ts";
import type { ApiCall } from "./api-call.ts";
import { openReliable } from "./message-calls.ts";
import { letterFilterOf, messagesOf, payloadsOf, wantedOf, type Wanted } from "./wanted.ts";
import { changeLetters } from "../../view/dead-reasons.ts";
import {
  changeChosen,
  isChange,
  noteChange,
  type MessageChange,
  type Chosen,
} from "../../view/change.ts";

// Changes to the messages of a list: to those chosen there, or to all that its filter lets through.

/** How far a change has come. */
interface Progress {
  /** How many were changed, or in a dry run would be. */
  readonly count: number;
  /** How many were found, as far as the list was read. */
  readonly found: number;
}

/**
 * `POST queues/:q/messages/change`: makes one change to messages in a `state`: to those that `ids` and `places` name, up to a
 * hundred, or with `isAll` to all that the query of a list lets through. Counts those that were still there; `isDry` only counts.
 * `revoke` takes a `reason`, and no `isAll`.
 *
 * All of a list takes several calls: `next` is the cursor of the following one. Without it the change stops. A reply without
 * `count` and `found` has nothing new to tell.
 */
export async function changeMessages(call: ApiCall): Promise<unknown> {
  const { verb, delay = 0, reason, isDry, chosen } = call;
  const wanted = wantedOf(call);
  const state = stateFor(verb, wanted);
  const queue = verb === "revoke" ? await openReliable(call) : await call.open();
  const change: MessageChange = { queue, state, verb, delay, reason, isDry };
  if (chosen !== undefined) {
    const count = await changeChosen(change, chosen, { signal: call.signal });
    const isTold = state === "dead" || verb === "revoke";
    const detail = [...(isTold ? ["chosen in a list"] : []), ...(reason ? [reason] : [])];
    await noteChange(change, count, detail.join(": ") || undefined);
    return { count };
  }
  // Each may read all that is ready.
  if (verb === "revoke") throw new HttpError(400, "messages that are revoked must be chosen");
  const list = JSON.stringify(["change", call.queue, wanted, verb, delay, isDry]);
  const letters = letterFilterOf(wanted);
  const { items, next } = await call.running.readings.page(
    list,
    letters === undefined ? call.page : { ...call.page, limit: MOST_STEPS },
    (signal) =>
      letters === undefined
        ? changing(change, wanted, signal)
        : changingLetters(change, letters, signal),
  );
  const most =
    letters !== undefined ? undefined : state === "quarantined" ? MOST_BARE : MOST_CHANGED;
  return { ...items.at(-1), next, most };
}

/** More steps than a call has time for. */
const MOST_STEPS = 100_000;

/** The most messages that are changed at once. Their ids take 10 MB while the change goes on. */
const MOST_CHANGED = 100_000;

function stateFor(verb: Verb, { state }: Wanted): Place {
  if (isChange(state, verb)) return state;
  const changes = Object.entries(PLACES).map(([name, place]) => [name, place.verbs] as const);
  const possible = changes.filter(([, some]) => some.length > 0);
  throw new HttpError(
    400,
    `verb must fit the state: ${JSON.stringify(Object.fromEntries(possible))}`,
  );
}

/**
 * Changes all that is wanted of a list, in batches. Finds everything before it changes anything: what it changes may move
 * to where the list is still being read. Yields undefined after each step of the search.
 */
async function* changing(
  change: MessageChange,
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<Progress | undefined, void, void> {
  const { state, isDry } = change;
  const isAll = state === "quarantined" && wanted.kind === undefined && wanted.text === undefined;
  if (isAll) {
    const count = await changeChosen(change, undefined, { signal });
    yield { count, found: count };
    return;
  }
  const all: Chosen[] = [];
  for await (const one of chosenBy(change, wanted, signal)) {
    const isMark = one !== undefined && all.push(one) % MARK === 0;
    yield isMark ? { count: isDry ? all.length : 0, found: all.length } : undefined;
    if (all.length >= MOST_CHANGED) break;
  }
  // Each element that leaves the quarantine moves those behind it, so it gets all spots at once.
  const size = state === "quarantined" ? MOST_CHANGED : BATCH;
  if (isDry) {
    yield { count: all.length, found: all.length };
    return;
  }
  let count = 0;
  try {
    for (let i = 0; i < all.length; i += size) {
      count += await changeChosen(change, all.slice(i, i + size), { signal });
      yield { count, found: all.length };
    }
  } finally {
    // Also what was done before a failure, or before the page was closed.
    await noteChange(change, count, detailOf(wanted));
  }
  yield { count, found: all.length };
}

/**
 * Changes all dead letters that a filter chooses, as it finds them: redriven letters cannot come back to where the list is
 * being read.
 */
async function* changingLetters(
  { queue, verb, delay, isDry }: MessageChange,
  filter: LetterFilter,
  signal: AbortSignal,
): AsyncGenerator<Progress, void, void> {
  const change = verb as "redrive" | "remove";
  for await (const { matched, done } of changeLetters(queue, change, filter, {
    delay,
    isDry,
    signal,
  })) {
    yield { count: isDry ? matched : done, found: matched };
  }
}

/** What the log says of the messages that a list let through: of cancelled ones, the beginning of their keys. */
function detailOf({ state, prefix, text, from }: Wanted): string | undefined {
  if (state === "dead") return "chosen by their payloads";
  return text === undefined && from === undefined ? prefix : undefined;
}

/** Tells how far the search has come after so many. */
const MARK = 1000;

/** How many messages are changed between two reports. */
const BATCH = 100;

async function* chosenBy(
  { queue, state, verb }: MessageChange,
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<Chosen | undefined, void, void> {
  if (state === "quarantined") {
    for await (const found of payloadsOf(queue, state, wanted, signal)) {
      const isLeft = verb === "requeue" && found?.isUnreadable === true;
      yield found === undefined || isLeft ? undefined : { place: found.place };
    }
    return;
  }
  for await (const seen of messagesOf(queue, state, wanted, signal)) {
    const isLeft = verb === "redrive" && seen !== undefined && isUnreadable(seen);
    yield seen === undefined || isLeft ? undefined : { id: seen.id, place: seen.place };
  }
}
