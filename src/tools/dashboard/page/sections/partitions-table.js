// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, count, duration } from "../data/format.js";
import { numberColumns } from "../data/numbers.js";
import { Table } from "../parts/table.js";
import { Text } from "../parts/text.js";

const COLUMNS = [
  { label: "Partition" },
  ...numberColumns("delayed", "overdue", "ready", "oldestReadyAge", "inFlight"),
  ...numberColumns("oldestInFlightAge", "retries", "dead", "quarantined"),
  { label: "Node" },
  { label: "Held by" },
];

/** The numbers of each partition, its Redis node, and the consumer that holds it. */
export function PartitionsTable({ partitions }) {
  return html`<section aria-labelledby="partitions">
    <h2 id="partitions">Partitions</h2>
    <${Table} caption="Partitions" hidesCaption columns=${COLUMNS}>
      ${partitions.map(
        (one) =>
          html`<tr key=${one.partition}>
            <th scope="row">
              ${one.partition < 0 ? "the ordinary queue, moving into partitions" : one.partition}
            </th>
            <td class="number">${count(one.delayed)}</td>
            <td class="number">${count(one.overdue)}</td>
            <td class="number">${count(one.ready)}</td>
            <td class="number">${duration(one.oldestReadyAge)}</td>
            <td class="number">${count(one.inFlight)}</td>
            <td class="number">${duration(one.oldestInFlightAge)}</td>
            <td class="number">${count(one.retries)}</td>
            <td class="number">${count(one.dead)}</td>
            <td class="number">${count(one.quarantined)}</td>
            <td>${one.node ? html`<${Text} of=${one.node} />` : UNKNOWN}</td>
            <td>${one.holder ? html`<${Text} of=${one.holder} />` : UNKNOWN}</td>
          </tr>`,
      )}
    <//>
  </section>`;
}
