// @ts-check
import { html, useRef } from "../../vendor/preact-htm.js";
import { count, instantText, many, minute, short } from "../data/format.js";
import { live } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { daysOf, shadeOf, startOfToday } from "../data/month.js";
import { addressAt, addressOf, replaceAddress } from "../data/route.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { StateLine } from "../parts/state-line.js";
import { Text } from "../parts/text.js";

/** How often to load the month (ms). The server counts at most once a minute. */
const INTERVAL = 60_000;

const HOUR = 3_600_000;
const HOURS = Array.from({ length: 24 }, (_, hour) => hour);

/** When the messages of all queues become due: the hours of the coming month, in the browser's time zone. */
export function MonthPage({ params }) {
  const from = startOfToday(live.now());
  const loaded = useLoaded(`api/month?from=${from}`, { every: INTERVAL });
  const month = loaded.data;
  const at = Number(params.at);
  const index = (at - from) / HOUR;
  const isChosen = month !== undefined && index in month.totals;
  const total = month?.totals.reduce((sum, one) => sum + one, 0);
  return html`<div>
    <div class="head">
      <h1 tabindex="-1">Month</h1>
      ${month && html`<p role="status">${summaryOf(month, total)}</p>`}
    </div>
    <${StateLine} loaded=${loaded} />
    ${month?.failed.length > 0 && html`<p class="failure" role="alert">${many(month.failed.length, "queue")} could not be read.</p>`}
    ${month?.beyond.length > 0 && html`<${Beyond} beyond=${month.beyond} />`}
    ${month && html`<${Heat} month=${month} chosen=${isChosen ? index : undefined} />`}
    ${isChosen && html`<${Cell} key=${index} month=${month} index=${index} />`}
  </div>`;
}

function summaryOf({ from, totals }, total) {
  if (total === 0) return "Nothing becomes due in the coming 31 days.";
  const most = Math.max(...totals);
  const peak = instantText(from + totals.indexOf(most) * HOUR).slice(0, -3);
  return `${many(total, "message")} in the coming 31 days, at most ${count(most)} an hour, from ${peak}.`;
}

/** What the month does not show: ticks of schedules are placed shortly before they are due. */
function Beyond({ beyond }) {
  const queues = [...new Set(beyond.map(({ queue }) => queue))];
  const rest = queues.length - MOST_NAMED;
  return html`<p class="quiet">
    Without the later ticks of ${many(beyond.length, "schedule")}, which are placed shortly before
    they are due:${" "}
    ${queues.slice(0, MOST_NAMED).map(
      (name, i) =>
        html`<span key=${name}
          >${i > 0 && ", "}<a href=${addressOf(name, "schedules")}
            ><${Text} of=${name} length=${60} /></a
        ></span>`,
    )}${rest > 0 && ` and ${many(rest, "other queue")}`}.
  </p>`;
}

/** How many queues with schedules are named. */
const MOST_NAMED = 5;

/** A table of days and hours. The arrow keys lead from cell to cell. */
function Heat({ month, chosen }) {
  const grid = useRef();
  const most = Math.max(...month.totals);
  const days = daysOf(month);
  const first =
    chosen ??
    Math.max(
      0,
      month.totals.findIndex((one) => one > 0),
    );
  const move = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -24, ArrowDown: 24 }[event.key];
    const index = Number(event.target.dataset?.index);
    if (step === undefined || Number.isNaN(index)) return;
    event.preventDefault();
    grid.current.querySelector(`[data-index="${index + step}"]`)?.focus();
  };
  return html`<div class="heat card">
    <table ref=${grid} role="grid" aria-label="Messages by day and hour" onKeyDown=${move}>
      <caption class="unseen">
        Messages that become due, by day and hour
      </caption>
      <thead>
        <tr>
          <th scope="col"><span class="unseen">Day</span></th>
          ${HOURS.map(
            (hour) =>
              html`<th scope="col" key=${hour} class=${hour % 6 === 0 ? "" : "minor"}>
                ${String(hour).padStart(2, "0")}
              </th>`,
          )}
          <th scope="col" class="sum">All</th>
        </tr>
      </thead>
      <tbody>
        ${days.map((one) => html`<${Day} key=${one.day} day=${one} most=${most} chosen=${chosen} first=${first} />`)}
      </tbody>
    </table>
    <p class="legend quiet" aria-hidden="true">
      less
      ${[0, 1, 2, 3, 4, 5].map((shade) => html`<span key=${shade} class=${`shade-${shade}`}></span>`)}
      more
    </p>
  </div>`;
}

const WEEKDAY = new Intl.DateTimeFormat("en", { weekday: "short" });

function Day({ day, most, chosen, first }) {
  const sum = day.hours.reduce((all, { count: number }) => all + number, 0);
  const byHour = HOURS.map((hour) => day.hours.filter((one) => one.hour === hour));
  return html`<tr>
    <th scope="row"><span class="weekday">${WEEKDAY.format(day.at)}</span> ${day.day.slice(5)}</th>
    ${byHour.map((hours, hour) =>
      hours.length === 0
        ? html`<td key=${hour}></td>`
        : html`<td key=${hour}>
            <${Hour} hours=${hours} most=${most} chosen=${chosen} first=${first} />
          </td>`,
    )}
    <td class="sum">${sum === 0 ? "" : short(sum)}</td>
  </tr>`;
}

/** An hour of a day; two, where the clocks are set back. */
function Hour({ hours, most, chosen, first }) {
  const [{ index, at }] = hours;
  const number = hours.reduce((sum, one) => sum + one.count, 0);
  const label = `${many(number, "message")} from ${instantText(at).slice(0, -3)}`;
  return html`<a
    class=${`shade-${shadeOf(number, most)}`}
    href=${addressAt("month", { at: String(at) })}
    data-index=${index}
    tabindex=${index === first ? 0 : -1}
    aria-label=${label}
    aria-current=${index === chosen ? "true" : undefined}
    title=${label}
    onClick=${(event) => {
      event.preventDefault();
      replaceAddress(addressAt("month", { at: String(at) }));
    }}
    >${number === 0 ? "" : short(number)}</a
  >`;
}

function columns(from) {
  const range = { from: String(from), until: String(from + HOUR) };
  return [
    {
      id: "name",
      label: "Queue",
      sortBy: ({ name }) => name,
      cell: ({ name }) =>
        html`<a href=${addressOf(name, "delayed", range)}><${Text} of=${name} length=${60} /></a>`,
    },
    {
      id: "count",
      label: "Messages",
      isNumber: true,
      state: "delayed",
      cell: (queue) => count(queue.count),
      sortBy: (queue) => queue.count,
    },
  ];
}

/** The queues whose messages become due in one hour. */
function Cell({ month, index }) {
  const at = month.from + index * HOUR;
  const loaded = useLoaded(`api/month/cell?from=${month.from}&hour=${index}`);
  const { queues = [] } = loaded.data ?? {};
  return html`<section aria-labelledby="cell">
    <div class="head">
      <h2 id="cell">${instantText(at).slice(0, -3)} to ${minute(at + HOUR)}</h2>
    </div>
    <${LoadedTable}
      loaded=${loaded}
      caption="Queues"
      columns=${columns(at)}
      rows=${queues}
      keyOf=${({ name }) => name}
      initial="messages"
      empty="Nothing becomes due in this hour."
    />
  </section>`;
}
