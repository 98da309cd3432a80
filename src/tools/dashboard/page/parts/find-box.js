// @ts-check
import { html, useRef } from "../../vendor/preact-htm.js";
import { addressAt, useRoute } from "../data/route.js";
import { Icon } from "./icon.js";
import { useKey } from "./keys.js";

/** The one box that finds a message by key or id in all queues, and queues by name. The key "/" leads to it. */
export function FindBox() {
  const input = useRef();
  const { page, params } = useRoute();
  const wanted = page === "find" ? (params.q ?? "") : "";
  useKey("/", () => {
    input.current.focus();
    input.current.select();
  });
  const find = (event) => {
    event.preventDefault();
    const q = input.current.value.trim();
    if (q !== "") location.hash = addressAt("find", { q });
  };
  return html`<form class="find" role="search" aria-label="Find a message" onSubmit=${find}>
    <${Icon} name="find" />
    <input
      ref=${input}
      key=${wanted}
      type="search"
      name="q"
      defaultValue=${wanted}
      placeholder="Find a message by key or id"
      aria-label="Find a message by key or id, in all queues"
      aria-keyshortcuts="/"
      autocomplete="off"
      autocapitalize="off"
      spellcheck=${false}
      dir="auto"
    />
    <kbd aria-hidden="true">/</kbd>
  </form>`;
}
