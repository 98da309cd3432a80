// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { UNKNOWN, count, duration, isKnown, many, relative } from "../data/format.js";
import { live, useLive } from "../data/live.js";
import { numberColumns } from "../data/numbers.js";
import { byUrgency, problemsOf } from "../data/problem.js";
import { addressOf } from "../data/route.js";
import { NumberCell, Table } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";
import { Problems } from "../sections/problems.js";

const COLUMNS = [
  { label: "Queue" },
  ...numberColumns("delayed", "nextDeadline", "overdue", "ready", "oldestReadyAge", "inFlight"),
  ...numberColumns("oldestInFlightAge", "retries", "dead", "quarantined", "consumers", "listeners"),
];

/** Shows the filter above this many queues. */
const MANY = 8;

/** The numbers of all queues. Those with problems come first. */
export function QueuesPage() {
  const { queues, trouble } = useLive();
  const [filter, setFilter] = useState("");
  return html`<div>
    <h1 tabindex="-1">Queues</h1>
    ${trouble !== undefined && html`<p class="failure" role="alert">${visible(trouble)}</p>`}
    ${queues === undefined && html`<p class="quiet">Loading…</p>`}
    ${
      queues?.length === 0 &&
      html`<p class="empty">
        This Redis has no queues. A queue appears when a message is offered to it.
      </p>`
    }
    ${
      queues?.length > 0 &&
      html`<div>
        <${Problems} rows=${queues} />
        ${
          queues.length > MANY &&
          html`<label class="filter"
            >Filter by name
            <input
              type="search"
              value=${filter}
              onInput=${(event) => setFilter(event.target.value)}
          /></label>`
        }
        <${QueuesTable} rows=${byUrgency(queues.filter(({ name }) => name.includes(filter)))} />
      </div>`
    }
  </div>`;
}

function QueuesTable({ rows }) {
  return html`<${Table} caption=${many(rows.length, "queue")} columns=${COLUMNS}>
    ${rows.map((row) => html`<${QueueRow} row=${row} key=${row.name} />`)}
  <//>`;
}

function QueueRow({ row }) {
  const problemColumns = new Set(problemsOf(row).map(({ column }) => column));
  const about = [row.kind, row.partitions > 0 && `${row.partitions} partitions`].filter(Boolean);
  const head = html`<th scope="row">
    <a href=${addressOf(row.name)}><${Text} of=${row.name} length=${60} /></a>
    <small
      >${about.join(", ")}${" "}${row.isPaused && html`<strong class="badge">paused</strong>`}</small
    >
  </th>`;
  if (row.error !== undefined) {
    return html`<tr>
      ${head}
      <td class="problem" colspan=${COLUMNS.length - 1}>
        Could not be read: ${visible(row.error)}
      </td>
    </tr>`;
  }
  return html`<tr>
    ${head}
    <td class="number">${count(row.delayed)}</td>
    <td class="number">
      ${isKnown(row.nextDeadline) ? relative(row.nextDeadline, live.now()) : UNKNOWN}
    </td>
    <${NumberCell} isProblem=${problemColumns.has("overdue")}>
      ${count(row.overdue)} ${row.overdue > 0 && html`<small>by ${duration(row.overdueBy)}</small>`}
    <//>
    <td class="number">${count(row.ready)}</td>
    <${NumberCell} isProblem=${problemColumns.has("oldestReadyAge")}
      >${duration(row.oldestReadyAge)}<//
    >
    <td class="number">${count(row.inFlight)}</td>
    <${NumberCell} isProblem=${problemColumns.has("oldestInFlightAge")}
      >${duration(row.oldestInFlightAge)}<//
    >
    <td class="number">${count(row.retries)}</td>
    <${NumberCell} isProblem=${problemColumns.has("dead")}>${count(row.dead)}<//>
    <${NumberCell} isProblem=${problemColumns.has("quarantined")}>${count(row.quarantined)}<//>
    <${NumberCell} isProblem=${problemColumns.has("consumers")}>${count(row.consumers)}<//>
    <${NumberCell} isProblem=${problemColumns.has("listeners")}>${count(row.listeners)}<//>
  </tr>`;
}
