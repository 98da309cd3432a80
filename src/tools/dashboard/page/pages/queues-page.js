// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, count, duration, isKnown, many, relative } from "../data/format.js";
import { live, useLive } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { LABELS, numberColumn } from "../data/numbers.js";
import { byUrgency, problemColumnsOf, problemsOf } from "../data/problem.js";
import { addressAt, addressOf, replaceAddress } from "../data/route.js";
import { STATES } from "../data/states.js";
import { isSilent } from "../data/trouble.js";
import { Choice } from "../parts/choice.js";
import { Spark } from "../parts/spark.js";
import { SortChoice, Table, sorted } from "../parts/table.js";
import { Text } from "../parts/text.js";
import { Tile } from "../parts/tile.js";
import { Health } from "../sections/health.js";
import { SpanChoice } from "../sections/span-choice.js";
import { Traffic } from "../sections/traffic.js";

/** How often to load the lines (ms). The server adds a point every minute. */
const INTERVAL = 60_000;

/** Shows the filter above this many queues. */
const MANY = 8;

/** All queues: what is wrong, the totals, and the numbers of each. */
export function QueuesPage({ params }) {
  const { queues, trouble } = useLive();
  const { span = "hour" } = params;
  const lines = useLoaded(`api/lines?span=${encodeURIComponent(span)}`, { every: INTERVAL }).data;
  return html`<div>
    <h1 tabindex="-1" class="unseen">Queues</h1>
    ${queues === undefined && html`<p class="quiet">Loading…</p>`}
    ${
      queues?.length === 0 &&
      (trouble === undefined || trouble.kind === "refusing") &&
      html`<p class="empty">
        This Redis has no queues. A queue appears when a message is offered to it.
      </p>`
    }
    ${queues !== undefined && (queues.length > 0 || trouble !== undefined) && html`<${Health} rows=${queues} trouble=${trouble} />`}
    ${
      queues?.length > 0 &&
      html`<div class=${isSilent(trouble) ? "stale" : ""}>
        <${Totals} rows=${queues} />
        <${SpanChoice}
          span=${span}
          past=${lines}
          onChange=${(value) => replaceAddress(addressAt("queues", { ...params, span: value }))}
        />
        <${Traffic} span=${span} lines=${lines} />
        <${Queues} rows=${queues} lines=${lines?.queues} params=${params} span=${span} />
      </div>`
    }
  </div>`;
}

function Totals({ rows }) {
  const total = (field) => rows.reduce((sum, row) => sum + (row[field] ?? 0), 0);
  const most = (field) => Math.max(...rows.map((row) => row[field] ?? -1));
  const next = Math.min(...rows.map((row) => row.nextDeadline ?? Infinity));
  const age = (field) => (most(field) < 0 ? "" : `oldest ${duration(most(field))}`);
  const overdue = total("overdue");
  const isProblem = new Set(rows.flatMap((row) => [...problemColumnsOf(row)]));
  const more = {
    delayed:
      overdue > 0
        ? `${count(overdue)} overdue`
        : next === Infinity
          ? ""
          : `next ${relative(next, live.now())}`,
    ready: age("oldestReadyAge"),
    inFlight: age("oldestInFlightAge"),
  };
  return html`<dl class="tiles card">
    ${Object.values(STATES).map(
      ({ slug, label, number }) =>
        html`<${Tile}
          key=${number}
          label=${label}
          value=${count(total(number))}
          more=${more[number]}
          state=${slug}
          isProblem=${isProblem.has(number)}
        />`,
    )}
  </dl>`;
}

/** Which queues the table shows. */
const SHOWN = {
  "": ["All", () => true],
  problems: ["With problems", (row) => problemsOf(row).length > 0],
  paused: ["Paused", (row) => row.isPaused],
};

function Queues({ rows, lines, params, span }) {
  const { q = "", show = "", sort } = params;
  const isShown = SHOWN[show]?.[1] ?? ((row) => problemsOf(row).some(({ name }) => name === show));
  const named = rows.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()));
  const shown = sorted(byUrgency(named.filter(isShown)), columnsOf(), sort);
  const change = (some) => replaceAddress(addressAt("queues", { ...params, ...some }));
  const sorting = { by: sort, onSort: (by) => change({ sort: by }) };
  const columns = columnsOf(lines, span).filter(
    ({ id }) => id !== "dropped" || named.some(({ dropped }) => dropped > 0),
  );
  const options = Object.entries(SHOWN).map(([value, [label, test]]) => [
    value,
    html`<span>${label} <span class="count">${count(named.filter(test).length)}</span></span>`,
  ]);
  return html`<section aria-label="Queues">
    <div class="tools">
      ${
        (rows.length > MANY || q !== "") &&
        html`<input
          type="search"
          aria-label="Filter by name"
          placeholder="Filter by name"
          value=${q}
          onInput=${({ target }) => change({ q: target.value })}
        />`
      }
      <${Choice}
        label="Queues to show"
        options=${options}
        value=${show}
        onChange=${(value) => change({ show: value })}
      />
      <${SortChoice} columns=${columns} sorting=${sorting} initial="urgency" />
    </div>
    ${
      shown.length === 0
        ? html`<p class="empty">No queue matches. <a href=${addressAt("queues")}>Show all</a></p>`
        : html`<${Table}
            caption=${many(shown.length, "queue")}
            hidesCaption
            columns=${columns}
            rows=${shown}
            keyOf=${(row) => row.name}
            sorting=${sorting}
          />`
    }
  </section>`;
}

const number = (name, more) =>
  numberColumn(name, { isProblem: (row) => problemColumnsOf(row).has(name), ...more });

/** The columns of the table; see parts/table.js. */
function columnsOf(lines = {}, span = "hour") {
  const lined = (name, state, write) => (row) =>
    html`<span><${Spark} values=${lines[row.name]?.[name]} state=${state} />${write(row)}</span>`;
  const finished = (row) => lines[row.name]?.finished?.findLast(isKnown);
  return [
    { id: "name", label: "Queue", cell: NameCell, sortBy: (row) => row.name.toLowerCase() },
    number("delayed", { cell: lined("delayed", "delayed", (row) => count(row.delayed)) }),
    {
      id: "nextDeadline",
      label: LABELS.nextDeadline,
      isNumber: true,
      className: "if-medium",
      cell: (row) => (isKnown(row.nextDeadline) ? relative(row.nextDeadline, live.now()) : UNKNOWN),
      sortBy: (row) => -(row.nextDeadline ?? Infinity),
      isNone: (row) => !isKnown(row.nextDeadline),
    },
    number("overdue", {
      cell: (row) =>
        row.overdue > 0
          ? html`<span
              >${count(row.overdue)}${" "}<small>by ${duration(row.overdueBy)}</small></span
            >`
          : "0",
    }),
    number("ready"),
    number("oldestReadyAge", { className: "if-wide" }),
    number("inFlight"),
    number("oldestInFlightAge", { className: "if-wide" }),
    number("retries"),
    number("dead"),
    number("quarantined", { className: "if-medium" }),
    number("dropped", { className: "if-medium" }),
    number("consumers", { className: "if-medium" }),
    number("listeners", { className: "if-wide" }),
    {
      id: "finished",
      label: span === "quarter" ? "Finished/day" : "Finished/min",
      isNumber: true,
      className: "if-medium",
      cell: lined("finished", "handled", (row) =>
        isKnown(finished(row)) ? count(Math.round(finished(row))) : UNKNOWN,
      ),
      isNone: (row) => !finished(row),
    },
  ];
}

function NameCell(row) {
  const about = [
    row.kind === "plain" && "plain",
    row.partitions > 0 && many(row.partitions, "partition"),
  ].filter(Boolean);
  return html`<span>
    <a href=${addressOf(row.name)}><${Text} of=${row.name} length=${60} /></a>
    ${row.isPaused && html`<span class="badge warning about">paused</span>`}
    ${about.map((text) => html`<span key=${text} class="badge about">${text}</span>`)}
    ${isKnown(row.error) && html`<span class="badge problem about">could not be read</span>`}
  </span>`;
}
