// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { Text } from "./text.js";

/** A name or a key as it is read, and on demand as it is stored, if the two may differ. */
export function RawForm({ of }) {
  const text = String(of);
  if (/^[\x20-\x7e]*$/.test(text)) return html`<${Text} of=${text} length=${1_000} lines />`;
  return html`<div>
    <${Text} of=${text} length=${1_000} lines />
    <details>
      <summary>Raw form</summary>
      <code class="text" dir="ltr">${rawForm(text)}</code>
    </details>
  </div>`;
}

/** A text with each character outside of ASCII as its code point, such as `\u{1f600}`. */
export function rawForm(text) {
  return Array.from(text, (character) =>
    /[\x20-\x5b\x5d-\x7e]/.test(character)
      ? character
      : `\\u{${character.codePointAt(0).toString(16)}}`,
  ).join("");
}
