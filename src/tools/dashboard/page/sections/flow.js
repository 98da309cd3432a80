// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, isKnown, many } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Instant } from "../parts/instant.js";
import { StateLine } from "../parts/state-line.js";
import { SortedTable } from "../parts/table.js";
import { Text } from "../parts/text.js";

/** How often to load the flow (ms). */
const INTERVAL = 5_000;

const COLUMNS = [
  {
    id: "lane",
    label: "Lane",
    sortBy: ({ lane }) => lane,
    cell: ({ lane }) =>
      lane === ""
        ? html`<span class="quiet">without a lane</span>`
        : html`<${Text} of=${lane} length=${60} />`,
  },
  {
    id: "waiting",
    label: "Waiting",
    isNumber: true,
    sortBy: ({ waiting }) => waiting,
    cell: ({ waiting }) => count(waiting),
  },
  {
    id: "running",
    label: "In hand",
    isNumber: true,
    sortBy: ({ running }) => running ?? -1,
    cell: ({ running }) => count(running),
    isNone: ({ running }) => !isKnown(running),
  },
  {
    id: "restsUntil",
    label: "Rests until",
    sortBy: ({ restsUntil }) => restsUntil ?? 0,
    cell: ({ restsUntil }) => html`<${Instant} at=${restsUntil} isExact />`,
    isNone: ({ restsUntil }) => !isKnown(restsUntil),
  },
];

/** How the messages of a queue become ready, and the lanes in which most of them wait; nothing if the queue has no flow. */
export function Flow({ name }) {
  const loaded = useLoaded(queuePath(name, "flow"), { every: INTERVAL });
  const { flow, waiting = 0, lanes = [], isMore = false } = loaded.data ?? {};
  if (loaded.error === undefined && !isKnown(flow) && waiting === 0) return null;
  return html`<section aria-labelledby="flow">
    <div class="head"><h2 id="flow">Flow</h2></div>
    ${loaded.error !== undefined && html`<${StateLine} loaded=${loaded} />`}
    ${
      loaded.data &&
      html`<p>
        ${isKnown(flow) ? flow : "ended"};${" "}
        <span class="quiet">${many(waiting, "message")} waiting for their turn</span>
      </p>`
    }
    ${
      lanes.length > 0 &&
      html`<${SortedTable}
        caption="Lanes in which messages wait or are in hand, and those that are held"
        hidesCaption
        columns=${COLUMNS}
        rows=${lanes}
        keyOf=${({ lane }) => lane}
        initial="most waiting"
      />`
    }
    ${isMore && html`<p class="quiet">These lanes have the most waiting; there are more.</p>`}
  </section>`;
}
