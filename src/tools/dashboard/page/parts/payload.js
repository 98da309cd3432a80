// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { count } from "../data/format.js";
import { Json } from "./json.js";
import { Text } from "./text.js";

/** How many characters of a payload are shown at first. */
const FIRST = 4_000;

/**
 * Shows a payload, always as text. `payload`: `{ format, text, isCut }`, or null if the server leaves it out of a list.
 */
export function Payload({ payload }) {
  const [isWhole, setWhole] = useState(false);
  if (!payload) return html`<p class="quiet">Too large to show in a list.</p>`;
  const { format, text, isCut } = payload;
  const isFolded = !isWhole && text.length > FIRST;
  const shown = isFolded ? text.slice(0, FIRST) : text;
  // A page cannot colour a hundred thousand words.
  const isJson = (format === "json" || format === "msgpack") && shown.length <= FIRST;
  const total = `${isCut ? "more than " : ""}${count(text.length)}`;
  const shownPart = `The first ${count(FIRST)} of ${total} characters.`;
  return html`<div class="payload">
    <p class="quiet">Shown as ${format}.</p>
    <div class="shown" tabindex="0" role="region" aria-label="Payload">
      ${
        isJson
          ? html`<${Json} of=${shown} />`
          : html`<pre><${Text} of=${shown} length=${shown.length} lines /></pre>`
      }
    </div>
    ${
      isFolded
        ? html`<p>
            ${shownPart}${" "}
            <button type="button" onClick=${() => setWhole(true)}>Show more</button>
          </p>`
        : isCut && html`<p>Cut off after ${count(text.length)} characters.</p>`
    }
  </div>`;
}

/** The column of a table for the payloads of its rows. */
export const PAYLOAD = {
  id: "payload",
  label: "Payload",
  className: "words",
  cell: ({ payload }) => html`<${Payload} payload=${payload} />`,
};

/** A checkbox that shows and hides payloads, or a line that explains why payloads are hidden. */
export function PayloadSwitch({ session, isShown, onChange }) {
  if (!session.payloads) {
    return html`<p class="quiet">Payloads are hidden on this dashboard.</p>`;
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
