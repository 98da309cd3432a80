import { changeQuarantined, MOST_BARE, payloadsIn, type BareState } from "../../inspect/bare.ts";
import { HttpError } from "../http/reply.ts";
import { listedPayload, type Call } from "./call.ts";

// Payloads without ids and keys: ready in a plain queue, or in the quarantine.

/** Which payloads of a list are wanted. */
interface Wanted {
  readonly state: BareState;
  /** Whether whole messages of an unknown layout, or payloads; both if it is missing. */
  readonly kind: string | undefined;
  /** A text in it. */
  readonly text: string | undefined;
}

/**
 * `GET queues/:q/payloads`: the payloads in the quarantine, or those that are ready in a plain queue; with `kind`, those
 * that are a `payload` or a whole `message`; with `text`, those that contain it.
 */
export async function listPayloads(call: Call): Promise<unknown> {
  const { wantsPayload } = call;
  const wanted: Wanted = {
    state: call.value("state") === "ready" ? "ready" : "quarantined",
    kind: call.value("kind"),
    text: call.value("text"),
  };
  if (wanted.text !== undefined) call.checkPayloads();
  const queue = await call.open();
  const read = async function* (signal: AbortSignal) {
    for await (const found of payloadsIn(queue, wanted.state, { signal })) {
      const { bytes, ...others } = found;
      yield isWanted(found, wanted)
        ? { ...others, ...(wantsPayload && { payload: listedPayload(bytes) }) }
        : undefined;
    }
  };
  const list = JSON.stringify([call.queue, wanted, wantsPayload]);
  const { items, next } = await call.running.readings.page(list, call.page, read);
  return { payloads: items, next, most: MOST_BARE };
}

function isWanted(
  { isUnreadable, bytes }: { readonly isUnreadable: boolean; readonly bytes: Buffer },
  { kind, text }: Wanted,
): boolean {
  return (
    (kind === undefined || kind === (isUnreadable ? "message" : "payload")) &&
    (text === undefined || bytes.includes(text))
  );
}

/**
 * `POST queues/:q/quarantine/change`: requeues or removes what is in the `places` that a list showed, or without these the
 * whole quarantine. Counts what is still there; `isDry` only counts.
 */
export async function changeQuarantine(call: Call): Promise<unknown> {
  const { verb, isDry, signal } = call;
  if (verb !== "requeue" && verb !== "remove") {
    throw new HttpError(400, "verb must be requeue or remove");
  }
  const places = call.hasPlaces ? call.places : undefined;
  return { count: await changeQuarantined(await call.open(), verb, places, { isDry, signal }) };
}
