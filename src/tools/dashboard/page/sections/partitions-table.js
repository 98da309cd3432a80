// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN } from "../data/format.js";
import { numberColumn } from "../data/numbers.js";
import { SortedTable } from "../parts/table.js";
import { Text } from "../parts/text.js";

const WIDE = { className: "if-wide" };

const COLUMNS = [
  {
    id: "partition",
    label: "Partition",
    sortBy: ({ partition }) => partition,
    cell: ({ partition }) =>
      partition < 0 ? "the ordinary queue, moving into partitions" : partition,
  },
  numberColumn("delayed"),
  numberColumn("overdue"),
  numberColumn("ready"),
  numberColumn("oldestReadyAge", WIDE),
  numberColumn("inFlight"),
  numberColumn("oldestInFlightAge", WIDE),
  numberColumn("retries"),
  numberColumn("dead"),
  numberColumn("quarantined", { className: "if-medium" }),
  nameColumn("node", "Node"),
  nameColumn("holder", "Held by"),
];

function nameColumn(id, label) {
  return {
    id,
    label,
    className: "if-medium",
    sortBy: (one) => one[id] ?? "",
    cell: (one) => (one[id] ? html`<${Text} of=${one[id]} />` : UNKNOWN),
    isNone: (one) => !one[id],
  };
}

/** The numbers of each partition, its Redis node, and the consumer that holds it. */
export function PartitionsTable({ partitions }) {
  return html`<section aria-labelledby="partitions">
    <div class="head"><h2 id="partitions">Partitions</h2></div>
    <${SortedTable}
      caption="Partitions"
      hidesCaption
      columns=${COLUMNS}
      rows=${partitions}
      keyOf=${({ partition }) => partition}
      initial="partition"
    />
  </section>`;
}
