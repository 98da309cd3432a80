import { html } from "../vendor/preact-htm.js";
import { UNKNOWN, instantText, isKnown, isoText, relative } from "./format.js";
import { live } from "./live.js";

/** An instant on the reader's clock and, with `isRelative`, how far away it is on the server's. */
export function Instant({ at, isRelative = true }) {
  if (!isKnown(at)) return UNKNOWN;
  const iso = isoText(at);
  return html`<time datetime=${iso} title=${iso}
    >${instantText(at)}${
      isRelative && html` <span class="quiet">${relative(at, live.now())}</span>`
    }</time
  >`;
}
