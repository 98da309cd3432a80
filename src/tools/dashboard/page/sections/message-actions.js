// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { instantText } from "../data/format.js";
import { addressOf } from "../data/route.js";
import { useShell } from "../parts/shell.js";
import { letterQuestions } from "./letter-questions.js";
import { UnreadableNote } from "./unreadable-note.js";

const TEN_MINUTES = 600_000;

/** The buttons that a message's state allows. */
export function MessageActions({ name, message, reload }) {
  const { session, ask } = useShell();
  if (session.readOnly) return null;
  const { state, id } = message;
  if (state === "delayed" || state === "retrying") {
    const { cancel, reschedule, promote } = waitingQuestions(name, id, reload);
    return html`<div class="actions">
      <button type="button" onClick=${() => ask(promote)}>Deliver now</button>
      <button type="button" onClick=${() => ask(reschedule)}>Reschedule</button>
      <button type="button" onClick=${() => ask(cancel)}>Cancel message</button>
    </div>`;
  }
  if (state !== "dead") return null;
  const { redrive, remove } = letterQuestions(name, id, reload);
  return html`<div class="actions">
    ${
      message.isUnreadable
        ? html`<${UnreadableNote} />`
        : html`<button type="button" onClick=${() => ask(redrive)}>Redrive</button>`
    }
    <button type="button" onClick=${() => ask(remove)}>Remove</button>
  </div>`;
}

/** Questions about a message that is delayed or waits for a retry. */
function waitingQuestions(name, id, reload) {
  const tooLate = "Nothing was changed: the message is no longer waiting.";
  // Rescheduling may give a message a new id. The page then moves to that id.
  const follow = async (moved) => {
    if (moved.id !== undefined && moved.id !== id)
      location.hash = addressOf(name, "message", { id: moved.id });
    else await reload();
  };
  const move = async (verb, body, say) => {
    const moved = await change(queuePath(name, `message/${verb}`), { id, ...body });
    await follow(moved);
    return moved.done === false ? tooLate : say(moved);
  };
  return {
    cancel: {
      title: "Cancel this message?",
      text: "The message is deleted and never delivered. This cannot be undone.",
      verb: "Cancel message",
      isDestructive: true,
      act: async () => {
        const { done } = await change(queuePath(name, "message/cancel"), { id });
        await reload();
        return done ? "The message was cancelled." : tooLate;
      },
    },
    reschedule: {
      title: "Reschedule this message?",
      text: "The message becomes due after this time, counted from now.",
      verb: "Reschedule",
      delay: { label: "Due in", initial: TEN_MINUTES },
      act: ({ delay }) =>
        move(
          "reschedule",
          { delay },
          ({ deadline }) => `The message is due at ${instantText(deadline)}.`,
        ),
    },
    promote: {
      title: "Deliver this message now?",
      text: "The message becomes due at once.",
      verb: "Deliver now",
      act: () => move("promote", {}, () => "The message is due now."),
    },
  };
}
