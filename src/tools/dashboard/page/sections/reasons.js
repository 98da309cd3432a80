// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, many } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { addressOf } from "../data/route.js";
import { Instant } from "../parts/instant.js";
import { useShell } from "../parts/shell.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { Text, visible } from "../parts/text.js";
import { allQuestion, changesIn } from "./changes.js";
import { groupedColumns } from "./message-columns.js";

/** The dead letters of a queue by reason, each reason with what can be done with its letters. */
export function Reasons({ name, dead, groupCount, reload }) {
  const { session } = useShell();
  const loaded = useLoaded(queuePath(name, "dead/reasons"), { version: dead });
  const { groups = [], others = 0, read = 0, total = 0 } = loaded.data ?? {};
  const finish = async () => {
    await Promise.all([loaded.reload(), reload()]);
  };
  const known = groupedColumns(columnsOf(name), groups, groupCount);
  const columns = [...known, ...(session.readOnly ? [] : [actionsOf(name, finish)])];
  return html`<section aria-labelledby="reasons">
    <div class="head">
      <h2 id="reasons">By reason</h2>
      <p>
        ${read < total && `The oldest ${count(read)} of ${count(total)}. `}${others > 0 && `${count(others)} have other reasons.`}
      </p>
    </div>
    <${LoadedTable}
      loaded=${loaded}
      caption="Dead letters by reason"
      columns=${columns}
      rows=${groups}
      keyOf=${({ reason, group, isUnreadable }) => `${isUnreadable} ${group} ${reason}`}
      initial="letters"
      empty="No dead letters."
    />
  </section>`;
}

function columnsOf(name) {
  return [
    {
      id: "reason",
      label: "Reason",
      sortBy: ({ reason }) => reason,
      cell: ({ reason, group, example }) =>
        html`<a href=${addressOf(name, "dead", { reason, group })} title=${visible(example)}
          ><${Text} of=${reason === "" ? "(no reason)" : reason} length=${200}
        /></a>`,
    },
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
}

function actionsOf(name, finish) {
  return {
    id: "actions",
    label: "Actions",
    isAction: true,
    cell: (group) => html`<${GroupActions} name=${name} group=${group} finish=${finish} />`,
  };
}

function GroupActions({ name, group: { reason, group, count: number, isUnreadable }, finish }) {
  const { ask } = useShell();
  const what = many(number, "dead letter");
  return html`<span>
    ${changesIn("dead")
      .filter(([verb]) => verb !== "redrive" || !isUnreadable)
      .map(
        ([verb, label]) =>
          html`<button
            key=${verb}
            type="button"
            aria-label=${`${label}: ${visible(reason)}`}
            onClick=${() => ask(allQuestion(name, "dead", verb, what, { reason, group }, finish))}
          >
            ${label}
          </button>`,
      )}
  </span>`;
}
