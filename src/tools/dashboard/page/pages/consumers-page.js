// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, duration } from "../data/format.js";
import { useQueue } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { Text } from "../parts/text.js";
import { groupedColumns } from "../sections/message-columns.js";

const COLUMNS = [
  {
    id: "name",
    label: "Consumer",
    cell: ({ name }) => html`<${Text} of=${name} />`,
    sortBy: ({ name }) => name,
  },
  {
    id: "group",
    label: "Group",
    cell: ({ group }) => html`<${Text} of=${group} />`,
    sortBy: ({ group }) => group,
  },
  {
    id: "inFlight",
    label: "In flight",
    isNumber: true,
    state: "in-flight",
    cell: ({ inFlight }) => count(inFlight),
    sortBy: ({ inFlight }) => inFlight,
    isNone: ({ inFlight }) => inFlight === 0,
  },
  {
    id: "idle",
    label: "Last heard of",
    isNumber: true,
    cell: ({ idle }) => `${duration(idle)} ago`,
    sortBy: ({ idle }) => idle,
  },
];

/** How often to load the consumers (ms). */
const INTERVAL = 5_000;

/** The consumers of a reliable queue. */
export function ConsumersPage({ name }) {
  const queue = useQueue(name);
  const loaded = useLoaded(queuePath(name, "consumers"), { every: INTERVAL });
  const consumers = loaded.data?.consumers ?? [];
  const empty =
    queue?.kind === "plain"
      ? "Redis does not know the consumers of a plain queue."
      : "No consumers: nobody takes messages from this queue.";
  return html`<div>
    <h2 class="unseen">Consumers</h2>
    <${LoadedTable}
      loaded=${loaded}
      caption="Consumers"
      columns=${groupedColumns(COLUMNS, consumers)}
      rows=${consumers}
      keyOf=${(one) => `${one.group} ${one.name}`}
      initial="group"
      empty=${empty}
    />
  </div>`;
}
