// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, many } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { addressOf } from "../data/route.js";
import { Instant } from "../parts/instant.js";
import { useShell } from "../parts/shell.js";
import { Menu } from "../parts/menu.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { SortChoice, sorted } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";
import { allQuestion, changesIn } from "./changes.js";
import { groupedColumns } from "./message-columns.js";

/**
 * The dead letters of a queue by reason, each reason with what can be done with its letters. A reason that stands for
 * several texts opens into them, each with the same.
 */
export function Reasons({ name, dead, groupCount, reload }) {
  const { session } = useShell();
  const loaded = useLoaded(queuePath(name, "dead/reasons"), { version: dead });
  const [by, onSort] = useState();
  const [open, setOpen] = useState(/** @type {readonly string[]} */ ([]));
  const { groups = [], others = 0, read = 0, total = 0 } = loaded.data ?? {};
  const finish = async () => {
    await Promise.all([loaded.reload(), reload()]);
  };
  const toggle = (key) =>
    setOpen(open.includes(key) ? open.filter((one) => one !== key) : [...open, key]);
  const known = groupedColumns([reasonOf(name, open, toggle), ...COLUMNS], groups, groupCount);
  const columns = [...known, ...(session.readOnly ? [] : [actionsOf(name, finish)])];
  const rows = sorted(groups, columns, by).flatMap((group) =>
    open.includes(keyOf(group)) ? [group, ...variantsOf(group)] : [group],
  );
  const sorting = { by, onSort };
  return html`<section aria-labelledby="reasons">
    <div class="head">
      <h2 id="reasons">By reason</h2>
      <p>
        ${read < total && `The oldest ${count(read)} of ${count(total)}. `}${others > 0 && `${count(others)} have other reasons.`}
      </p>
    </div>
    <${SortChoice} columns=${columns} sorting=${sorting} initial="letters" />
    <${LoadedTable}
      loaded=${loaded}
      caption="Dead letters by reason"
      columns=${columns}
      rows=${rows}
      keyOf=${keyOf}
      sorting=${sorting}
      empty="No dead letters."
    />
  </section>`;
}

function keyOf({ reason, group, isUnreadable, of = "" }) {
  return `${isUnreadable} ${group} ${reason} ${of}`;
}

/** The rows of what the letters of a reason say in full, and of how many say something else. */
function variantsOf(whole) {
  const { group, isUnreadable, variants } = whole;
  const of = keyOf(whole);
  const rest = whole.count - variants.reduce((sum, one) => sum + one.count, 0);
  return [
    ...variants.map((one) => ({ ...one, group, isUnreadable, of })),
    ...(rest > 0 ? [{ reason: "", group, isUnreadable, of, count: rest, isRest: true }] : []),
  ];
}

function reasonOf(name, open, toggle) {
  return {
    id: "reason",
    label: "Reason",
    sortBy: ({ reason }) => reason,
    cell: (row) =>
      row.of === undefined
        ? html`<${Folded} name=${name} row=${row} open=${open} toggle=${toggle} />`
        : html`<div class="variant">
            ${
              row.isRest
                ? html`<span class="quiet">other texts</span>`
                : html`<${ReasonLink} name=${name} row=${row} length=${1000} />`
            }
          </div>`,
  };
}

/** A reason, and how many texts it stands for. */
function Folded({ name, row, open, toggle }) {
  const { reason, variants } = row;
  const isAll = variants.reduce((sum, one) => sum + one.count, 0) === row.count;
  const isOne = isAll && variants.length === 1 && variants[0].reason === reason;
  const key = keyOf(row);
  const label = `${variants.length === 1 ? "whole text" : many(variants.length, "text")}${isAll ? "" : " and others"}`;
  return html`<span class="reason">
    <${ReasonLink} name=${name} row=${row} length=${200} />
    ${
      !isOne &&
      html`<button
        type="button"
        class="link"
        aria-expanded=${open.includes(key)}
        aria-label=${`${label}: ${visible(reason)}`}
        onClick=${() => toggle(key)}
      >
        ${label}
      </button>`
    }
  </span>`;
}

function ReasonLink({ name, row: { reason, group, example }, length }) {
  return html`<a
    href=${addressOf(name, "dead", { reason, group })}
    title=${example === undefined ? undefined : visible(example)}
    ><${Text} of=${reason === "" ? "(no reason)" : reason} length=${length} lines
  /></a>`;
}

const COLUMNS = [
  {
    id: "count",
    label: "Letters",
    isNumber: true,
    state: "dead",
    cell: (one) => count(one.count),
    sortBy: (one) => one.count,
  },
  {
    id: "group",
    label: "Group",
    className: "if-medium",
    cell: ({ group }) => html`<${Text} of=${group} />`,
    sortBy: ({ group }) => group,
  },
  {
    id: "first",
    label: "First died",
    className: "if-medium",
    cell: (one) => html`<${Instant} at=${one.firstDiedAt} />`,
    sortBy: ({ firstDiedAt }) => firstDiedAt,
  },
  {
    id: "last",
    label: "Last died",
    cell: (one) => html`<${Instant} at=${one.lastDiedAt} />`,
    sortBy: ({ lastDiedAt }) => lastDiedAt,
  },
];

function actionsOf(name, finish) {
  return {
    id: "actions",
    label: "Actions",
    isAction: true,
    cell: (row) => !row.isRest && html`<${Actions} name=${name} row=${row} finish=${finish} />`,
  };
}

function Actions({ name, row: { reason, group, isUnreadable }, finish }) {
  const { ask } = useShell();
  const items = changesIn("dead")
    .filter(({ verb }) => verb !== "redrive" || !isUnreadable)
    .map(({ verb, label, isDestructive }) => ({
      label,
      isDestructive,
      act: () => ask(allQuestion(name, "dead", verb, { reason, group }, finish)),
    }));
  return html`<${Menu} label="Change" about=${visible(reason)} items=${items} />`;
}
