// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, duration, many } from "../data/format.js";
import { useQueue } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { Text } from "../parts/text.js";

const COLUMNS = [
  { label: "Consumer" },
  { label: "Group" },
  { label: "In flight", isNumber: true },
  { label: "Idle for", isNumber: true },
];

const EVERY = 5_000;

/** Who consumes a reliable queue. */
export function ConsumersPage({ name }) {
  const queue = useQueue(name);
  const loaded = useLoaded(queuePath(name, "consumers"), { every: EVERY });
  const consumers = loaded.data?.consumers ?? [];
  const empty =
    queue?.kind === "plain"
      ? "Redis does not tell who waits for the messages of a plain queue."
      : "No consumer is there.";
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
  </div>`;
}
