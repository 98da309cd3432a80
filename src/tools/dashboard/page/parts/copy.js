// @ts-check
import { html, useRef, useState } from "../../vendor/preact-htm.js";
import { Text } from "./text.js";

/** How long a button says that it has copied (ms). */
const SAID_FOR = 2_000;

/** A command in a block, with a button that copies it. */
export function Copy({ text }) {
  const block = useRef();
  const [said, setSaid] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setSaid("Copied");
    } catch {
      // Only pages of HTTPS and of this machine may write to the clipboard.
      getSelection().selectAllChildren(block.current);
      setSaid("Selected");
    }
    setTimeout(() => setSaid(""), SAID_FOR);
  };
  return html`<div class="copy">
    <code ref=${block}><${Text} of=${text} length=${text.length} lines /></code>
    <button type="button" onClick=${() => void copy()}>
      <span role="status">${said}</span>${said === "" ? "Copy" : ""}
    </button>
  </div>`;
}
