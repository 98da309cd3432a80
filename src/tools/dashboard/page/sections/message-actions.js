// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { useQueue } from "../data/live.js";
import { useShell } from "../parts/shell.js";
import { changesIn, messageQuestion } from "./changes.js";
import { UnreadableNote } from "./unreadable-note.js";

/** The buttons that a message's state allows. */
export function MessageActions({ name, message, reload }) {
  const { session, ask } = useShell();
  const queue = useQueue(name);
  if (session.readOnly) return null;
  const changes = changesIn(message.state, "one", queue).filter(
    ({ verb }) => verb !== "redrive" || !message.isUnreadable,
  );
  if (changes.length === 0) return null;
  return html`<div class="actions">
    ${message.isUnreadable && html`<${UnreadableNote} />`}
    ${changes.map(
      ({ verb, label, isDestructive }) =>
        html`<button
          key=${verb}
          type="button"
          class=${isDestructive ? "danger" : ""}
          onClick=${() => ask(messageQuestion(name, message, verb, reload))}
        >
          ${label}
        </button>`,
    )}
  </div>`;
}
