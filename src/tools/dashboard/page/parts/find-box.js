// @ts-check
import { html, useEffect, useRef } from "../../vendor/preact-htm.js";
import { addressAt, useRoute } from "../data/route.js";
import { Icon } from "./icon.js";

/** The one box that finds a message by key or id in all queues, and queues by name. The key "/" leads to it. */
export function FindBox() {
  const input = useRef();
  const { page, params } = useRoute();
  const wanted = page === "find" ? (params.q ?? "") : "";
  useEffect(() => {
    const focus = (event) => {
      const isTyping = event.target.closest?.("input, textarea, select, dialog");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      event.preventDefault();
      input.current.focus();
      input.current.select();
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
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
