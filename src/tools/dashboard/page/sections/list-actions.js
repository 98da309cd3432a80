// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { count, many } from "../data/format.js";
import { useShell } from "../parts/shell.js";
import { allLettersQuestions } from "./letter-questions.js";

const TEN_MINUTES = 600_000;

/** What can be done with some messages of a list, by the verb of the API. */
const VERBS = {
  promote: {
    label: "Deliver now",
    text: "They become due at once.",
    done: "made due",
  },
  reschedule: {
    label: "Reschedule",
    text: "They become due after this time, counted from now.",
    done: "rescheduled",
    delay: { label: "Due in", initial: TEN_MINUTES },
  },
  cancel: {
    label: "Cancel",
    text: "They are deleted and never delivered. This cannot be undone.",
    done: "cancelled",
    isDestructive: true,
  },
  redrive: {
    label: "Redrive",
    text:
      "Each is delivered again to the group that failed to handle it, with its attempts counted from 1. " +
      "Unreadable letters stay.",
    done: "redriven",
    delay: { label: "Deliver in", initial: 0 },
  },
  remove: {
    label: "Remove",
    text: "The letters and their payloads are deleted. This cannot be undone.",
    done: "removed",
    isDestructive: true,
  },
};

/** The verbs that the messages in a state allow. */
const ALLOWED = {
  delayed: ["promote", "reschedule", "cancel"],
  retrying: ["promote", "reschedule", "cancel"],
  dead: ["redrive", "remove"],
};

/** Whether a list of messages in this state has actions. */
export function hasActions(state) {
  return state in ALLOWED;
}

/** What can be done with the chosen messages of a list, and with all dead letters while none is chosen. */
export function ListActions({ name, state, total, isWhole, messages, selection, reload }) {
  const { ask } = useShell();
  const { chosen } = selection;
  if (chosen.length === 0 && state === "dead") {
    const mayRedrive = !isWhole || messages.some((letter) => !letter.isUnreadable);
    return html`<${AllLetters}
      name=${name}
      total=${total}
      mayRedrive=${mayRedrive}
      reload=${reload}
    />`;
  }
  const isNone = chosen.length === 0;
  const finish = async () => {
    selection.set([]);
    await reload();
  };
  return html`<div class="actions">
    <span class="quiet" role="status"
      >${isNone ? "Select messages to change them" : `${count(chosen.length)} selected`}</span
    >
    ${
      !isNone &&
      ALLOWED[state].map(
        (verb) =>
          html`<button
            key=${verb}
            type="button"
            onClick=${() => ask(question(name, state, verb, chosen, finish))}
          >
            ${VERBS[verb].label}
          </button>`,
      )
    }
    ${!isNone && html`<button type="button" class="link" onClick=${() => selection.set([])}>Clear</button>`}
  </div>`;
}

/** The question whether to change the chosen messages. It counts first how many of them are still there. */
function question(name, state, verb, chosen, finish) {
  const { label, text, done, delay, isDestructive } = VERBS[verb];
  const path = queuePath(name, "messages/change");
  const ids = [...new Set(chosen.map(({ id }) => id))];
  const one = many(ids.length, "message");
  return {
    title: `${label}: ${one}?`,
    text,
    verb: label,
    delay,
    isDestructive,
    check: async () => {
      const { count: found } = await change(path, { verb, ids, isDry: true });
      return found === ids.length
        ? `${one}, still ${state}.`
        : `${count(found)} of ${one} ${found === 1 ? "is" : "are"} still ${state}; the others are left alone.`;
    },
    act: async (values) => {
      const { count: changed } = await change(path, { verb, ids, delay: values.delay });
      await finish();
      return `${many(changed, "message")} ${changed === 1 ? "was" : "were"} ${done}.`;
    },
  };
}

function AllLetters({ name, total, mayRedrive, reload }) {
  const { ask } = useShell();
  const { redrive, remove } = allLettersQuestions(name, total, reload);
  return html`<div class="actions">
    ${mayRedrive && html`<button type="button" onClick=${() => ask(redrive)}>Redrive all</button>`}
    <button type="button" onClick=${() => ask(remove)}>Remove all</button>
  </div>`;
}
