// @ts-check
import { change, queuePath } from "../data/api.js";
import { count, instantText, many } from "../data/format.js";
import { addressOf } from "../data/route.js";

// What can be done with messages: the questions for the dialog (parts/dialog.js). Each first counts what it would change.

const TEN_MINUTES = 600_000;

/** The changes, by the verb of the API. `one`: the label for a single message, where it differs. */
const CHANGES = {
  promote: {
    label: "Deliver now",
    title: (what) => `Deliver ${what} now?`,
    text: "What is chosen becomes due at once.",
    done: "made due",
  },
  reschedule: {
    label: "Reschedule",
    text: "What is chosen becomes due after this time, counted from now.",
    done: "rescheduled",
    delay: { label: "Due in", initial: TEN_MINUTES },
  },
  cancel: {
    // A button that only says "Cancel" could also close the dialog.
    label: "Cancel messages",
    one: "Cancel message",
    title: (what) => `Cancel ${what}?`,
    text: "What is chosen is deleted and never delivered. This cannot be undone.",
    done: "cancelled",
    isDestructive: true,
  },
  redrive: {
    label: "Redrive",
    text:
      "Each message is delivered again to the group that failed to handle it, with its attempts counted from 1. " +
      "Unreadable letters stay.",
    done: "redriven",
    delay: { label: "Deliver in", initial: 0 },
  },
  requeue: {
    label: "Requeue",
    text:
      "Payloads become ready again, for example after a codec was fixed. Those still unreadable come back here. " +
      "Whole messages of an unknown layout stay.",
    done: "requeued",
  },
  remove: {
    label: "Remove",
    text: "What is chosen is deleted for good. This cannot be undone.",
    done: "removed",
    isDestructive: true,
  },
};

/** The changes that the messages in a state allow. */
const ALLOWED = {
  delayed: ["promote", "reschedule", "cancel"],
  retrying: ["promote", "reschedule", "cancel"],
  dead: ["redrive", "remove"],
  quarantined: ["requeue", "remove"],
};

/** The changes that a state allows, as pairs of verb and label. `isOne`: of a single message. */
export function changesIn(state, isOne = false) {
  return (ALLOWED[state] ?? []).map((verb) => [verb, labelOf(verb, isOne)]);
}

function labelOf(verb, isOne) {
  const { label, one = label } = CHANGES[verb];
  return isOne ? one : label;
}

function titleOf(verb, what) {
  const { label, title = (words) => `${label} ${words}?` } = CHANGES[verb];
  return title(what);
}

/** The question whether to change the chosen messages of a list. Calls `finish` when it is done. */
export function selectionQuestion(name, state, verb, chosen, finish) {
  const path = queuePath(name, state === "quarantined" ? QUARANTINE : "messages/change");
  const body = { verb, ids: chosen.map(({ id }) => id), places: chosen.map(({ place }) => place) };
  const total = chosen.length;
  const tell = (found) =>
    found >= total
      ? `${many(total, "message")}, still ${state}.`
      : `${count(found)} of ${many(total, "message")} ${found === 1 ? "is" : "are"} still ${state}; the rest is left alone.`;
  return questionOf(verb, many(total, "message"), "message", path, body, tell, finish);
}

const QUARANTINE = "quarantine/change";

/** The question whether to change the whole quarantine. */
export function wholeQuestion(name, verb, finish) {
  const path = queuePath(name, QUARANTINE);
  return questionOf(verb, "all of the quarantine", "message", path, { verb }, tellNow, finish);
}

/** The question whether to change dead letters, called `what`: all, or those of `letters`, a reason and a group. */
export function lettersQuestion(name, verb, what, letters, finish) {
  const path = queuePath(name, "dead/change");
  return questionOf(verb, what, "dead letter", path, { verb, ...letters }, tellNow, finish);
}

function tellNow(found, noun) {
  return `${many(found, noun)} now.`;
}

function questionOf(verb, what, noun, path, body, tell, finish) {
  const { label, text, done, delay, isDestructive } = CHANGES[verb];
  return {
    title: titleOf(verb, what),
    text,
    verb: label,
    delay,
    isDestructive,
    check: async () => tell((await change(path, { ...body, isDry: true })).count, noun),
    act: async (values) => {
      const { count: changed } = await change(path, { ...body, delay: values.delay });
      await finish();
      return `${many(changed, noun)} ${changed === 1 ? "was" : "were"} ${done}.`;
    },
  };
}

/** The question whether to change one message that the page shows. It needs no count: its state is in sight. */
export function messageQuestion(name, { id, place, state }, verb, reload) {
  const { delay, isDestructive } = CHANGES[verb];
  const text = CHANGES[verb].text.replace("What is chosen", "The message");
  const title = titleOf(verb, "this message");
  const question = { title, text, verb: labelOf(verb, true), delay, isDestructive };
  const tooLate = `Nothing was changed: the message is no longer ${state}.`;
  const asOne = async (values) => {
    const { count: changed } = await change(queuePath(name, "messages/change"), {
      verb,
      ids: [id],
      places: [place],
      delay: values.delay,
    });
    await reload();
    return changed === 0 ? tooLate : `The message was ${CHANGES[verb].done}.`;
  };
  // Rescheduling may give a message a new id. The page then moves to that id.
  const move = async (values) => {
    const moved = await change(queuePath(name, `message/${verb}`), { id, delay: values.delay });
    if (moved.done === false) {
      await reload();
      return tooLate;
    }
    if (moved.id === id) await reload();
    else location.hash = addressOf(name, "message", { id: moved.id });
    return verb === "promote"
      ? "The message is due now."
      : `The message is due at ${instantText(moved.deadline)}.`;
  };
  return { ...question, act: verb === "promote" || verb === "reschedule" ? move : asOne };
}
