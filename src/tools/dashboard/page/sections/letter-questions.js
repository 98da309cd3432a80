// @ts-check
import { change, queuePath } from "../data/api.js";
import { count, many } from "../data/format.js";

/**
 * Questions for the dialog: whether to redrive or remove one dead letter.
 *
 * @param {string} name the queue
 * @param {string} id the message's id
 * @param {() => Promise<void>} reload
 */
export function letterQuestions(name, id, reload) {
  return questionsFor({ name, id, reload, letters: "this dead letter", which: "" });
}

/**
 * The same for all dead letters of a queue.
 *
 * @param {string} name the queue
 * @param {number} total how many letters there are
 * @param {() => Promise<void>} reload
 */
export function allLettersQuestions(name, total, reload) {
  const letters = `all dead letters (${count(total)})`;
  return questionsFor({ name, id: "all", reload, letters, which: " all" });
}

function questionsFor({ name, id, reload, letters, which }) {
  const act = (verb, done) => async (values) => {
    const delay = values.delay === undefined ? {} : { delay: values.delay };
    const { count: number } = await change(queuePath(name, `dead/${verb}`), { id, ...delay });
    await reload();
    return `${many(number, "dead letter")} ${number === 1 ? "was" : "were"} ${done}.`;
  };
  const isAll = id === "all";
  return {
    redrive: {
      title: `Redrive ${letters}?`,
      text: isAll
        ? "Each is delivered again to the group that failed to handle it, with its attempts counted from 1. " +
          "Unreadable letters stay."
        : "It is delivered again to the group that failed to handle it, with its attempts counted from 1.",
      verb: `Redrive${which}`,
      delay: { label: "Deliver in", initial: 0 },
      act: act("redrive", "redriven"),
    },
    remove: {
      title: `Remove ${letters}?`,
      text: isAll
        ? "All letters and their payloads are deleted. This cannot be undone."
        : "The letter and its payload are deleted. This cannot be undone.",
      verb: `Remove${which}`,
      isDestructive: true,
      act: act("remove", "removed"),
    },
  };
}
