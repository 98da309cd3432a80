// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** Shows that something is loading, could not be loaded, or is empty. */
export function StateLine({ loaded, isEmpty = false, empty = "Nothing here." }) {
  if (loaded.error !== undefined) {
    const stale = loaded.data === undefined ? "" : " The data below may be out of date.";
    return html`<p class="failure" role="alert">
      Could not load this: ${loaded.error.message}.${stale}
      <button type="button" onClick=${() => void loaded.reload()}>Try again</button>
    </p>`;
  }
  if (loaded.isLoading) return html`<p class="quiet">Loading…</p>`;
  return isEmpty ? html`<p class="empty">${empty}</p>` : null;
}
