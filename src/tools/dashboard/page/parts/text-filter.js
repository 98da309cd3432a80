// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** A box for the text by which a list is filtered; `children` follow its button. */
export function TextFilter({ label, button, value = "", onFilter, children }) {
  const filter = (event) => {
    event.preventDefault();
    onFilter(new FormData(event.target).get("text"));
  };
  return html`<form role="search" aria-label=${label} class="tools" onSubmit=${filter}>
    <input
      name="text"
      type="search"
      aria-label=${label}
      placeholder=${`${label} …`}
      defaultValue=${value}
      autocomplete="off"
      spellcheck=${false}
      dir="auto"
    />
    <button type="submit">${button}</button>
    ${children}
  </form>`;
}
