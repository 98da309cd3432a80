import { readablePayload, type ReadablePayload } from "../../inspect/readable-payload.ts";

/** A payload as the page shows it. */
export interface ShownPayload extends ReadablePayload {
  /** Whether the text is only its beginning. */
  readonly isCut: boolean;
}

/** How much of a payload is shown, by itself and in a list (characters). */
const MOST = 262_144;
const MOST_LISTED = 4_096;

/** Larger payloads are not read for a list (bytes): a page of them would keep this process busy. */
const LISTED_BYTES = 65_536;

export function shownPayload(bytes: Uint8Array): ShownPayload {
  return cut(readablePayload(bytes), MOST);
}

/** The same for a list of payloads; undefined if it is too large to be shown there. */
export function listedPayload(bytes: Uint8Array): ShownPayload | undefined {
  return bytes.length > LISTED_BYTES ? undefined : cut(readablePayload(bytes), MOST_LISTED);
}

function cut({ format, text }: ReadablePayload, most: number): ShownPayload {
  return { format, text: text.slice(0, most), isCut: text.length > most };
}
