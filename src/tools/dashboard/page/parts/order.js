// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count } from "../data/format.js";

/**
 * In which order a list is, in words; once it is sorted by a column, among how many, and the way back.
 * - `order`: that of Redis; `about`: what to say of it, by default the same
 * - `isCut`: whether there may be more than those `sortedAmong`
 */
export function Order({ order, about = order, isCut, sortedAmong, onReset }) {
  if (sortedAmong === undefined) return html`<span class="end">${about}</span>`;
  return html`<span class="end">
    ${isCut ? `sorted among the first ${count(sortedAmong)} ${order}` : "sorted"}${" · "}
    <button type="button" class="link" onClick=${onReset}>as in Redis</button>
  </span>`;
}
