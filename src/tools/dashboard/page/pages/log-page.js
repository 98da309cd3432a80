// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { isKnown } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Instant } from "../parts/instant.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { Text } from "../parts/text.js";

/** How often to load the log (ms). */
const INTERVAL = 5_000;

const COLUMNS = [
  {
    id: "what",
    label: "What",
    className: "words",
    cell: ({ what }) => html`<${Text} of=${what} length=${300} />`,
  },
  {
    id: "by",
    label: "By",
    cell: ({ by }) =>
      isKnown(by) ? html`<span class="mono"><${Text} of=${by} /></span>` : "many processes",
  },
  { id: "at", label: "When", cell: ({ at }) => html`<${Instant} at=${at} />` },
];

/** What people and processes did to a queue, the newest first. */
export function LogPage({ name }) {
  const loaded = useLoaded(queuePath(name, "log"), { every: INTERVAL });
  const { entries = [] } = loaded.data ?? {};
  return html`<div>
    <h2 class="unseen">Log</h2>
    <p class="quiet">
      What was done to this queue, and by which process. Redis keeps the last 200 entries, for 90
      days after the last one. Messages and their handling are not in it.
    </p>
    <${LoadedTable}
      loaded=${loaded}
      caption="What was done to this queue"
      columns=${COLUMNS}
      rows=${entries.map((entry, i) => ({ ...entry, place: entries.length - i }))}
      keyOf=${({ at, place }) => `${at} ${place}`}
      empty="Nothing is noted: nobody has paused this queue, cancelled or redriven messages in bulk, declared schedules or set partitions, or not within 90 days."
    />
  </div>`;
}
