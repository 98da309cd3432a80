// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { Spark } from "./spark.js";

/**
 * A number in a tile: `label`, `value`, what `more` there is to say, and the line of its last hour. `state` is the slug
 * of the state that it counts; `href` is where more is known.
 */
export function Tile({ label, value, more = "", state, values, href, isProblem = false }) {
  const hasSpark = values !== undefined;
  const name =
    state === undefined ? label : html`<span class=${`state is-${state}`}>${label}</span>`;
  return html`<div
    class=${`tile card${isProblem ? " problem" : ""}${hasSpark ? " has-spark" : ""}`}
  >
    <dt>${href === undefined ? name : html`<a class="tile-link" href=${href}>${name}</a>`}</dt>
    <dd>${value}</dd>
    <dd class="more">${more}</dd>
    ${hasSpark && html`<dd class="unspoken" aria-hidden="true"><${Spark} values=${values} state=${state} /></dd>`}
  </div>`;
}
