// @ts-check
import { html } from "../../vendor/preact-htm.js";

/**
 * A number in a strip, `<dl class="tiles card">`: `label`, `value`, and what `more` there is to say. `state` is the slug of
 * the state that it counts.
 */
export function Tile({ label, value, more = "", state, isProblem = false }) {
  const name =
    state === undefined ? label : html`<span class=${`state is-${state}`}>${label}</span>`;
  return html`<div class=${isProblem ? "tile problem" : "tile"}>
    <dt>${name}</dt>
    <dd>${value}</dd>
    ${more !== "" && html`<dd class="more">${more}</dd>`}
  </div>`;
}
