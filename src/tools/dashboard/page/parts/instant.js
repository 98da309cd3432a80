// @ts-check
import { html } from "../../vendor/preact-htm.js";
import {
  UNKNOWN,
  about,
  clock,
  isKnown,
  isoText,
  minute,
  relative,
  second,
} from "../data/format.js";
import { live } from "../data/live.js";

/**
 * An instant in the browser's time zone, with its day unless that is today, and its distance from now on the Redis
 * server's clock: `14:05 in 6 min`. `isExact` adds seconds to both.
 *
 * @param {{ at: number | null | undefined, isExact?: boolean }} props
 */
export function Instant({ at, isExact = false }) {
  if (!isKnown(at)) return UNKNOWN;
  const now = live.now();
  const iso = isoText(at);
  const distance = (isExact ? relative : about)(at, now);
  return html`<time datetime=${iso} title=${iso}>
    ${clock(at, now, isExact ? second : minute)}${" "}<span class="quiet">${distance}</span>
  </time>`;
}
