// @ts-check
import { change, queuePath } from "../data/api.js";
import { count, instantText, isKnown, many } from "../data/format.js";
import { addressOf } from "../data/route.js";
import { stateOf } from "../data/states.js";
import { visible } from "../parts/text.js";

// What can be done with messages: the questions for the dialog (parts/dialog.js). Each first counts what it would change.

const TEN_MINUTES = 600_000;

/**
 * The changes, by the verb of the API. `one` and `all`: the labels for a single message and for all of a list, where they
 * differ.
 */
const CHANGES = {
  promote: {
    label: "Deliver now",
    all: "Deliver all",
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
    all: "Cancel all",
    title: (what) => `Cancel ${what}?`,
    text:
      "What is chosen is deleted and never delivered. This cannot be undone. A schedule whose runs are among it goes on " +
      "with those behind them.",
    done: "cancelled",
    isDestructive: true,
  },
  revoke: {
    label: "Revoke",
    one: "Revoke message",
    title: (what) => `Revoke ${what}?`,
    text:
      "What is chosen is stopped wherever it is, for every group, and never begins again. A handler that runs is told by its " +
      "signal, and what it settles counts for nothing. This cannot be undone.",
    done: "revoked",
    reason: { label: "Reason" },
    isDestructive: true,
    isReliableOnly: true,
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

/**
 * The changes that a state allows, as `{ verb, label, isDestructive }`: of `"one"` message, of `"all"` of a list, or of some.
 * Only where the `queue` is known to be reliable can its messages be revoked.
 *
 * @param {string} state
 * @param {string} [of]
 * @param {{ kind?: string }} [queue]
 */
export function changesIn(state, of = "some", queue) {
  const { verbs = [] } = stateOf(state);
  const mayRevoke = queue?.kind === "reliable" && of !== "all";
  const allowed = Object.keys(CHANGES).filter(
    (verb) => verbs.includes(verb) && (mayRevoke || !CHANGES[verb].isReliableOnly),
  );
  return allowed.map((verb) => {
    const { isDestructive = false } = CHANGES[verb];
    return { verb, label: labelOf(verb, of), isDestructive };
  });
}

function labelOf(verb, of) {
  const { label, one = label, all = `${label} all` } = CHANGES[verb];
  return { one, all, some: label }[of];
}

function titleOf(verb, what) {
  const { label, title = (words) => `${label} ${words}?` } = CHANGES[verb];
  return title(what);
}

/** The question whether to change the chosen messages of a list. Calls `finish` when it is done. */
export function selectionQuestion(name, state, verb, chosen, finish) {
  const total = chosen.length;
  const what = many(total, "message");
  const body = { verb, ids: chosen.map(({ id }) => id).filter(isKnown), places: placesOf(chosen) };
  const send = (more) => change(queuePath(name, CHANGE, { state }), { ...body, ...more });
  const tell = ({ count: found }) =>
    found >= total
      ? `${what}, still ${state}.`
      : `${count(found)} of ${what} ${found === 1 ? "is" : "are"} still ${state}; the rest is left alone.`;
  const about = [
    ["Queue", name],
    ["Messages", namesOf(chosen)],
  ];
  return questionOf(verb, { title: titleOf(verb, what), about }, "message", send, tell, finish);
}

/** The keys of the first few, or else their ids or positions. */
function namesOf(chosen) {
  const names = chosen
    .slice(0, FEW)
    .map(({ key, id, position }) => key ?? id ?? `position ${position}`);
  const others = chosen.length - names.length;
  return `${names.join(", ")}${others > 0 ? ` and ${count(others)} more` : ""}`;
}

const FEW = 5;

const CHANGE = "messages/change";

function placesOf(chosen) {
  return chosen.map(({ place }) => place);
}

/**
 * What a `filter` lets through, as pairs of a label and a value: the parameters of a list's path. Shown above the list, and
 * where all of it is about to be changed.
 *
 * @param {Record<string, any>} filter
 */
export function limitsOf({ reason, group, prefix, text, kind, from, until }) {
  const pairs = [
    ["Reason", reason],
    ["Group", group],
    ["Key begins with", prefix],
    ["Payload contains", text],
    ["Kind", kind],
    ["Due", from && `from ${instantText(Number(from))} to ${instantText(Number(until))}`],
  ];
  return pairs.filter(([, value]) => isKnown(value) && value !== "");
}

/**
 * The question whether to change all of a list, or with a `filter` all that it lets through: the parameters of the list's
 * path.
 */
export function allQuestion(name, state, verb, filter, finish) {
  const limits = limitsOf(filter);
  const all = state === "dead" ? "dead letters" : `${state} messages`;
  const isReason =
    isKnown(filter.reason) && limits.every(([label]) => label === "Reason" || label === "Group");
  const what =
    limits.length === 0
      ? `all ${all}`
      : isReason
        ? `the ${all} of this reason`
        : `all ${all} that match`;
  const about = [["Queue", name], ...limits];
  const noun = state === "dead" ? "dead letter" : "message";
  /** Goes on page by page, and tells how far it has come, for as long as somebody waits. */
  const send = async (more, tell, isOpen) => {
    let reached = { count: 0, found: 0 };
    let after;
    for (;;) {
      const path = queuePath(name, CHANGE, { ...filter, state, after });
      // A reply without numbers has nothing new to tell.
      reached = { ...reached, ...(await change(path, { verb, isAll: true, ...more })) };
      after = reached.next;
      reached.next = undefined;
      if (!isKnown(after) || !isOpen()) return reached;
      tell(
        more.isDry || reached.count === 0
          ? `Counting … ${reached.found > 0 ? `${count(reached.found)} so far` : "none found yet"}.`
          : `${count(reached.count)} of ${many(reached.found, noun)} ${CHANGES[verb].done} …`,
      );
    }
  };
  const tell = ({ found, most }) =>
    `${many(found, noun)} now.${isKnown(most) && found >= most ? ` These are the first ${count(most)}: the rest is for another time.` : ""}`;
  return questionOf(verb, { title: titleOf(verb, what), about }, noun, send, tell, finish);
}

function questionOf(verb, subject, noun, send, tellFound, finish) {
  const { label, text, done, delay, reason, isDestructive } = CHANGES[verb];
  return {
    ...subject,
    text,
    verb: label,
    delay,
    reason,
    isDestructive,
    check: async (tell, isOpen) => tellFound(await send({ isDry: true }, tell, isOpen)),
    act: async (values, tell) => {
      // Goes on when the dialog is closed: somebody wanted it.
      const { count: changed } = await send(values, tell, () => true);
      await finish();
      return `${many(changed, noun)} ${changed === 1 ? "was" : "were"} ${done}.`;
    },
  };
}

/** The question whether to change one message that the page shows. It needs no count: its state is in sight, but where it has to be exact. */
export function messageQuestion(name, { id, place, state }, verb, reload) {
  const { delay, reason, isDestructive } = CHANGES[verb];
  const text = CHANGES[verb].text.replace("What is chosen", "The message");
  const title = titleOf(verb, "this message");
  const question = { title, text, verb: labelOf(verb, "one"), delay, reason, isDestructive };
  const tooLate = `Nothing was changed: the message is no longer ${state}.`;
  const asOne = async (values) => {
    const { count: changed } = await change(queuePath(name, CHANGE, { state }), {
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
  if (verb === "revoke") return { ...question, ...revoking(name, id, reload) };
  return { ...question, act: verb === "promote" || verb === "reschedule" ? move : asOne };
}

/** What the dialog does to revoke a message: it looks where it is, and stops it there. */
function revoking(name, id, reload) {
  const send = (more) => change(queuePath(name, "message/revoke"), { id, ...more });
  const gone = "Nothing was changed: the message is gone.";
  return {
    check: async () => {
      const { places, running } = await send({ isDry: true });
      const all = [
        ...running.map(runningText),
        ...places.filter(({ stage }) => stage !== "running").map(placeText),
      ];
      return all.length === 0 ? "It is gone." : `It is ${all.join("; ")}.`;
    },
    act: async ({ reason }) => {
      const { stage, hasEnded } = await send({ reason });
      await reload();
      if (stage === "gone") return gone;
      return `The message was ${stage}, and is revoked.${hasEnded ? "" : " Its handler is told, and may still run."}`;
    },
  };
}

function runningText({ group, consumer, host, pid, takenAt }) {
  const where = isKnown(host) ? `${visible(host)}/${pid}` : visible(consumer);
  return `running in ${where} since ${instantText(takenAt)}${groupText(group)}`;
}

function placeText({ stage, group }) {
  return `${stage}${groupText(group)}`;
}

function groupText(group) {
  return isKnown(group) ? ` (group ${visible(group)})` : "";
}
