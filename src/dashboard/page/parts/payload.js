// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { count } from "../data/format.js";
import { Text } from "./text.js";

/** How much of a payload is shown at first, in characters. */
const FIRST = 4_000;

/** A payload as text, and never as anything else. `payload`: `{ format, text }`. */
export function Payload({ payload }) {
  const [isWhole, setWhole] = useState(false);
  const { format, text } = payload;
  const isCut = !isWhole && text.length > FIRST;
  return html`<div class="payload">
    <p class="quiet">Shown as ${format}.</p>
    <pre
      tabindex="0"
      role="region"
      aria-label="Payload"
    ><${Text} of=${isCut ? text.slice(0, FIRST) : text} length=${text.length} lines /></pre>
    ${
      isCut &&
      html`<p>
        The first ${count(FIRST)} of ${count(text.length)} characters.${" "}
        <button type="button" onClick=${() => setWhole(true)}>Show all</button>
      </p>`
    }
  </div>`;
}

/** The switch that shows payloads, or says why there is none. */
export function PayloadSwitch({ session, isShown, onChange }) {
  if (!session.payloads) {
    return html`<p class="quiet">
      Payloads are hidden: this dashboard was started without leave to show them.
    </p>`;
  }
  return html`<label class="switch"
    ><input
      type="checkbox"
      checked=${isShown}
      onChange=${(event) => onChange(event.target.checked)}
    />
    Show payloads</label
  >`;
}
