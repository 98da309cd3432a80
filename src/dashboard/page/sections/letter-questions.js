// @ts-check
import { change, queuePath } from "../data/api.js";
import { many } from "../data/format.js";

/** What to ask before one dead letter is redriven or removed, or `"all"`; `number`: how many that is. */
export function letterQuestions(name, id, reload, number = 1) {
  const isAll = id === "all";
  const these = isAll ? `all ${many(number, "dead letter")}` : "this dead letter";
  const act = (verb, told) => async (values) => {
    const delay = values.delay === undefined ? {} : { delay: values.delay };
    const { count } = await change(queuePath(name, `dead/${verb}`), { id, ...delay });
    await reload();
    return `${many(count, "dead letter")} ${count === 1 ? "was" : "were"} ${told}.`;
  };
  return {
    redrive: {
      title: `Redrive ${these}?`,
      text: "Delivered again, as if for the first time, to the group that could not handle it.",
      verb: isAll ? "Redrive all" : "Redrive",
      delay: { label: "After", initial: 0 },
      act: act("redrive", "redriven"),
    },
    remove: {
      title: `Remove ${these}?`,
      text: "Removed for good, payload and all. This cannot be undone.",
      verb: isAll ? "Remove all" : "Remove",
      isGrave: true,
      act: act("remove", "removed"),
    },
  };
}
