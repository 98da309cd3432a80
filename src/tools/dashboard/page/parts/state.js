// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { stateOf } from "../data/states.js";

/** The name of a state, behind a dot of its colour. */
export function State({ of }) {
  const { slug, label } = stateOf(of);
  return html`<span class=${`state is-${slug}`}>${label}</span>`;
}
