// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, instantText, isKnown, isoText, relative } from "../data/format.js";
import { live } from "../data/live.js";

/** An instant in the browser's time zone, and its distance from now on the Redis server's clock. */
export function Instant({ at }) {
  if (!isKnown(at)) return UNKNOWN;
  const iso = isoText(at);
  const distance = relative(at, live.now());
  return html`<time datetime=${iso} title=${iso}>
    ${instantText(at)}${" "}<span class="quiet">${distance}</span>
  </time>`;
}
