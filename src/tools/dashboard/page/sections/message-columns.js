// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, count, isKnown, size } from "../data/format.js";
import { addressOf } from "../data/route.js";
import { Instant } from "../parts/instant.js";
import { State } from "../parts/state.js";
import { Text } from "../parts/text.js";
import { EarlierFailures } from "./failures.js";
import { UnreadableNote } from "./unreadable-note.js";

// The columns of lists of messages; see parts/table.js. The server sorts these lists, by the field that is the column's id.

const instant = (id, label, more = {}) => ({
  id,
  label,
  cell: (one) => html`<${Instant} at=${one[id]} />`,
  sortBy: (one) => one[id],
  isNone: (one) => !isKnown(one[id]),
  ...more,
});

const words = (id, label, more = {}) => ({
  id,
  label,
  cell: (one) => (isKnown(one[id]) ? html`<${Text} of=${one[id]} length=${80} />` : UNKNOWN),
  sortBy: (one) => one[id],
  isNone: (one) => !isKnown(one[id]),
  ...more,
});

const number = (id, label, write = count, more = {}) => ({
  id,
  label,
  isNumber: true,
  cell: (one) => write(one[id]),
  sortBy: (one) => one[id],
  isNone: (one) => !one[id],
  ...more,
});

const message = (queue) => ({
  id: "key",
  label: "Message",
  sortBy: ({ key }) => key,
  cell: ({ id, key }) =>
    html`<a class=${isKnown(key) ? "" : "mono"} href=${addressOf(queue, "message", { id })}
      ><${Text} of=${key ?? id}
    /></a>`,
});

const state = {
  id: "state",
  label: "State",
  sortBy: (one) => one.state,
  cell: (one) => html`<${State} of=${one.state} />`,
};

const lastFailure = {
  id: "lastFailure",
  label: "Failed because",
  className: "words",
  cell: ({ failures }) =>
    failures.length > 0 ? html`<${Text} of=${failures.at(-1).reason} length=${200} />` : UNKNOWN,
  isNone: ({ failures }) => failures.length === 0,
};

const reason = {
  id: "reason",
  label: "Reason",
  sortBy: (letter) => letter.reason,
  className: "words",
  cell: (letter) =>
    html`<span>
      <${Text} of=${letter.reason} length=${300} />
      ${letter.isUnreadable && html`<${UnreadableNote} />`}
      <${EarlierFailures} letter=${letter} />
    </span>`,
};

const MEDIUM = { className: "if-medium" };
const WIDE = { className: "if-wide" };

/** The columns that follow the message, by state; "" stands for all states. */
const COLUMNS = {
  "": [state, instant("deadline", "Due"), words("group", "Group", MEDIUM)],
  delayed: [
    instant("deadline", "Due"),
    instant("offeredAt", "Offered", MEDIUM),
    number("size", "Size", size, MEDIUM),
  ],
  ready: [
    instant("readyAt", "Ready since"),
    number("attempts", "Attempts"),
    words("group", "Group", MEDIUM),
    number("size", "Size", size, MEDIUM),
  ],
  "in flight": [
    instant("takenAt", "Since"),
    words("host", "Host"),
    number("pid", "Process", (pid) => (isKnown(pid) ? String(pid) : UNKNOWN)),
    number("attempts", "Attempt"),
    words("group", "Group", MEDIUM),
    words("consumer", "Consumer", { className: "if-wide mono" }),
  ],
  retrying: [
    instant("deadline", "Next attempt"),
    number("attempts", "Attempts"),
    lastFailure,
    words("group", "Group", MEDIUM),
  ],
  dead: [
    reason,
    number("attempts", "Attempts"),
    instant("diedAt", "Died"),
    words("group", "Group", MEDIUM),
    number("size", "Size", size, WIDE),
  ],
};

/** The columns of the list of what all queues have in flight. */
export const BUSY_COLUMNS = [
  {
    ...message(),
    cell: (one) => message(one.queue).cell(one),
  },
  {
    id: "queue",
    label: "Queue",
    sortBy: ({ queue }) => queue,
    cell: ({ queue }) =>
      html`<a href=${addressOf(queue, "in-flight")}><${Text} of=${queue} length=${60} /></a>`,
  },
  ...COLUMNS["in flight"],
];

/** The columns without that of the group, as long as there is but one: of `groups` that are known, and among the rows. */
export function groupedColumns(columns, rows, groups = 0) {
  const seen = new Set(rows.map(({ group }) => group).filter(isKnown));
  return Math.max(groups, seen.size) > 1 ? columns : columns.filter(({ id }) => id !== "group");
}

/** The columns of the list of a queue's messages in a state; undefined stands for all states. */
export function messageColumns(queue, wanted) {
  return [message(queue), ...(COLUMNS[wanted ?? ""] ?? COLUMNS[""])];
}
