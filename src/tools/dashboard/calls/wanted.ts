import { payloadsIn, type BarePayload, type BareState } from "../../view/bare.ts";
import type { InspectedQueue } from "../../view/inspector.ts";
import { messagesIn, messagesWith } from "../../view/locate.ts";
import type { MessageState, Sighting } from "../../view/sighting.ts";
import { checks, foldReason, type LetterFilter } from "../../../inside.ts";
import type { ApiCall } from "./api-call.ts";

// What a list shows, and what a change of all that a list shows is made to: the same query for both.

/** Which messages of a list are wanted. They have to meet every condition that is given. */
export interface Wanted {
  readonly state: MessageState | "quarantined" | undefined;
  /** The beginning of their keys. */
  readonly prefix: string;
  /** The reason of dead letters, as it is or folded. */
  readonly reason: string | undefined;
  readonly group: string | undefined;
  /** When they become or became due, at the earliest, and before when (epoch ms). */
  readonly from: number | undefined;
  readonly until: number | undefined;
  /** Of the quarantine: whether whole messages of an unknown layout, or payloads. */
  readonly kind: string | undefined;
  /** A text in the payload. */
  readonly text: string | undefined;
}

const INSTANTS = { least: 0, most: checks.YEAR_9999 };

/** @throws {HttpError} 400 if a condition is not legal, 403 if the payloads to look into are hidden. */
export function wantedOf(call: ApiCall): Wanted {
  const text = call.value("text");
  if (text !== undefined) call.checkPayloads();
  return {
    state: call.state,
    prefix: call.value("prefix") ?? "",
    reason: call.value("reason"),
    group: call.value("group"),
    from: call.whole("from", INSTANTS),
    until: call.whole("until", INSTANTS),
    kind: call.value("kind"),
    text,
  };
}

/**
 * The same as a filter of dead letters, which reads no payloads; undefined if it asks for more than that can tell, or for
 * another state.
 */
export function letterFilterOf(wanted: Wanted): LetterFilter | undefined {
  const { state, prefix, reason, group, from, until, text } = wanted;
  const isFilter = state === "dead" && (from ?? until ?? text) === undefined;
  return isFilter ? { reason, group, ...(prefix !== "" && { prefix }) } : undefined;
}

/** The wanted messages, in the order in which Redis has them. Yields undefined for each one that is not wanted. */
export async function* messagesOf(
  queue: InspectedQueue,
  state: MessageState | undefined,
  wanted: Wanted,
  signal: AbortSignal,
): AsyncGenerator<Sighting | undefined, void, void> {
  const { prefix, until = Infinity } = wanted;
  const found =
    state === undefined || prefix !== ""
      ? messagesWith(prefix, queue, { signal })
      : messagesIn(queue, state, { signal });
  for await (const seen of found) {
    yield seen && isWanted(seen, state, wanted) ? seen : undefined;
    // Delayed messages come by deadline.
    if (state === "delayed" && prefix === "" && seen && seen.deadline >= until) return;
  }
}

function isWanted(
  seen: Sighting,
  state: MessageState | undefined,
  { reason, group, from = 0, until = Infinity, text }: Wanted,
): boolean {
  return (
    (state === undefined || seen.state === state) &&
    (reason === undefined || hasReason(seen.reason, reason)) &&
    (group === undefined || seen.group === group) &&
    seen.deadline >= from &&
    seen.deadline < until &&
    (text === undefined || seen.payload.includes(text))
  );
}

/** Whether a letter died for a reason: the whole, what its count by reason shows of it, or the same folded. */
function hasReason(own = "", reason: string): boolean {
  if (own === reason) return true;
  const shown = Buffer.from(own).subarray(0, MOST_SHOWN).toString();
  return shown === reason || foldReason(shown) === reason;
}

/** How many bytes of a reason the heads of letters have. */
const MOST_SHOWN = 1000;

/** The wanted payloads without ids and keys, the oldest first. Yields undefined for each one that is not wanted. */
export async function* payloadsOf(
  queue: InspectedQueue,
  state: BareState,
  { kind, text }: Wanted,
  signal: AbortSignal,
): AsyncGenerator<BarePayload | undefined, void, void> {
  for await (const found of payloadsIn(queue, state, { signal })) {
    const isKind = kind === undefined || kind === (found.isUnreadable ? "message" : "payload");
    yield isKind && (text === undefined || found.bytes.includes(text)) ? found : undefined;
  }
}
