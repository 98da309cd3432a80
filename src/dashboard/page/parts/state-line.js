// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** What stands where something is being read, cannot be read, or is not there. */
export function StateLine({ loaded, isEmpty = false, empty = "There is nothing here." }) {
  if (loaded.error !== undefined) {
    const stale = loaded.data === undefined ? "" : " What stands here is older.";
    return html`<p class="failure" role="alert">
      Not read: ${loaded.error.message}.${stale}
      <button type="button" onClick=${() => void loaded.reload()}>Try again</button>
    </p>`;
  }
  if (loaded.isLoading) return html`<p class="quiet">Reading…</p>`;
  return isEmpty ? html`<p class="empty">${empty}</p>` : null;
}
