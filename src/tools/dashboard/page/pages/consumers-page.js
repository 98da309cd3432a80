// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, duration, many } from "../data/format.js";
import { useQueue } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { Text } from "../parts/text.js";
import { InFlight } from "../sections/in-flight.js";

const COLUMNS = [
  { label: "Consumer" },
  { label: "Group" },
  { label: "In flight", isNumber: true },
  { label: "Idle for", isNumber: true },
];

/** How often to load the consumers (ms). */
const INTERVAL = 5_000;

/** The consumers of a reliable queue, and what they have in flight. */
export function ConsumersPage({ name, params }) {
  const queue = useQueue(name);
  const loaded = useLoaded(queuePath(name, "consumers"), { every: INTERVAL });
  const consumers = loaded.data?.consumers ?? [];
  const empty =
    queue?.kind === "plain"
      ? "Redis does not know the consumers of a plain queue."
      : "No consumers.";
  return html`<div>
    <h2>Consumers</h2>
    <${StateLine} loaded=${loaded} isEmpty=${consumers.length === 0} empty=${empty} />
    ${
      consumers.length > 0 &&
      html`<${Table} caption=${many(consumers.length, "consumer")} columns=${COLUMNS}>
        ${consumers.map(
          (one) =>
            html`<tr key=${`${one.group} ${one.name}`}>
              <th scope="row"><${Text} of=${one.name} /></th>
              <td><${Text} of=${one.group} /></td>
              <td class="number">${count(one.inFlight)}</td>
              <td class="number">${duration(one.idle)}</td>
            </tr>`,
        )}
      <//>`
    }
    ${queue?.kind !== "plain" && html`<${InFlight} name=${name} params=${params} />`}
  </div>`;
}
