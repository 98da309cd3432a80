// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** One of a few values, all of them in sight. `options`: pairs of value and label. */
export function Choice({ label, options, value, onChange }) {
  return html`<fieldset class="choice">
    <legend class="unseen">${label}</legend>
    ${options.map(
      ([one, name]) =>
        html`<label key=${one}
          ><input
            type="radio"
            name=${label}
            value=${one}
            checked=${value === one}
            onChange=${() => onChange(one)}
          /><span>${name}</span></label
        >`,
    )}
  </fieldset>`;
}
