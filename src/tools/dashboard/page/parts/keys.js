// @ts-check
import { html, useEffect, useRef } from "../../vendor/preact-htm.js";

/** The keys of the page, and what they do. */
const KEYS = [
  ["/", "Find a message by key or id"],
  ["?", "List the keys"],
  ["Esc", "Close a dialog"],
  ["← ↑ → ↓", "Choose a time span; in the month, go from hour to hour"],
];

/** Calls `act` when the key is pressed, unless somebody types, or a dialog is open. */
export function useKey(key, act) {
  useEffect(() => {
    const listen = (event) => {
      const isTyping = event.target.closest?.("input, textarea, select, dialog");
      if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      event.preventDefault();
      act();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

/** The button that lists the keys, as "?" does. The focus returns to where it was. */
export function Keys() {
  const dialog = useRef();
  const show = () => dialog.current.showModal();
  useKey("?", show);
  return html`<span class="keys">
    <button type="button" aria-label="Keys" aria-keyshortcuts="?" onClick=${show}>?</button>
    <dialog ref=${dialog} aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="pairs">
        ${KEYS.map(
          ([key, what]) =>
            html`<div key=${key}>
              <dt><kbd>${key}</kbd></dt>
              <dd>${what}</dd>
            </div>`,
        )}
      </dl>
      <div class="actions">
        <button type="button" onClick=${() => dialog.current.close()}>Close</button>
      </div>
    </dialog>
  </span>`;
}
