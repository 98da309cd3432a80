// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { instantText } from "../data/format.js";
import { letterQuestions } from "./letter-questions.js";
import { addressOf } from "../data/route.js";
import { useShell } from "../parts/shell.js";

const TEN_MINUTES = 600_000;

/** The buttons of one message: those that its state allows. */
export function MessageActions({ name, message, reload }) {
  const { session, ask } = useShell();
  if (session.readOnly) return null;
  const { state, id } = message;
  if (state === "delayed" || state === "retrying") {
    const { cancel, reschedule, promote } = waitingQuestions(name, id, reload);
    return html`<div class="actions">
      <button type="button" onClick=${() => ask(promote)}>Deliver now</button>
      <button type="button" onClick=${() => ask(reschedule)}>Reschedule</button>
      <button type="button" onClick=${() => ask(cancel)}>Cancel it</button>
    </div>`;
  }
  if (state !== "dead") return null;
  const { redrive, remove } = letterQuestions(name, id, reload);
  return html`<div class="actions">
    <button type="button" onClick=${() => ask(redrive)}>Redrive</button>
    <button type="button" onClick=${() => ask(remove)}>Remove</button>
  </div>`;
}

function waitingQuestions(name, id, reload) {
  const too = "Nothing was done: the message does not wait any more.";
  // Where a message gets a new id, the page goes on with that one.
  const follow = async (moved) => {
    if (moved.id !== undefined && moved.id !== id)
      location.hash = addressOf(name, "message", { id: moved.id });
    else await reload();
  };
  const move = async (verb, body, say) => {
    const moved = await change(queuePath(name, `message/${verb}`), { id, ...body });
    await follow(moved);
    return moved.done === false ? too : say(moved);
  };
  return {
    cancel: {
      title: "Cancel this message?",
      text: "It is removed and never delivered. This cannot be undone.",
      verb: "Cancel the message",
      isGrave: true,
      act: async () => {
        const { done } = await change(queuePath(name, "message/cancel"), { id });
        await reload();
        return done ? "The message was cancelled." : too;
      },
    },
    reschedule: {
      title: "Reschedule this message?",
      text: "It becomes due this long from now, instead of at its deadline.",
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
      text: "It becomes due at once, and is taken like any other.",
      verb: "Deliver now",
      act: () => move("promote", {}, () => "The message is due now."),
    },
  };
}
