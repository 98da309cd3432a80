// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** Explains why an unreadable dead letter has no Redrive button. */
export function UnreadableNote() {
  return html`<p class="quiet">
    This letter cannot be redriven: its address, payload or group is missing.
  </p>`;
}
