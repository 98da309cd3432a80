import { readablePayload, type ReadablePayload } from "../../inspect/readable-payload.ts";

/** A payload as the page shows it. */
export interface ShownPayload extends ReadablePayload {
  /** Whether the text is cut off at the end. */
  readonly isCut: boolean;
}

/** The most characters to show of a payload, by itself and in a list. */
const MAX_SHOWN = 262_144;
const MAX_SHOWN_IN_LIST = 4_096;

/** Lists leave out larger payloads (bytes): a page of them would keep this process busy. */
const MAX_BYTES_IN_LIST = 65_536;

/** A payload for a page of its own. */
export function shownPayload(bytes: Uint8Array): ShownPayload {
  return cut(readablePayload(bytes), MAX_SHOWN);
}

/** A payload for a row of a list; undefined if it is too large for one. */
export function listedPayload(bytes: Uint8Array): ShownPayload | undefined {
  return bytes.length > MAX_BYTES_IN_LIST
    ? undefined
    : cut(readablePayload(bytes), MAX_SHOWN_IN_LIST);
}

function cut({ format, text }: ReadablePayload, most: number): ShownPayload {
  return { format, text: text.slice(0, most), isCut: text.length > most };
}
