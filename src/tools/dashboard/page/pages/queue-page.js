// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, count, duration, isKnown, relative } from "../data/format.js";
import { live, useQueue } from "../data/live.js";
import { LABELS } from "../data/numbers.js";
import { problemsOf } from "../data/problem.js";
import { visible } from "../parts/text.js";
import { Forecast } from "../sections/forecast.js";
import { History } from "../sections/history.js";
import { PartitionsTable } from "../sections/partitions-table.js";
import { Problems } from "../sections/problems.js";

/** The overview of a queue: its problems, numbers, forecast, last hour and partitions. */
export function QueuePage({ name }) {
  const queue = useQueue(name);
  if (queue === undefined) return html`<p class="quiet">Loading…</p>`;
  if (queue.error !== undefined) {
    return html`<p class="failure" role="alert">Could not be read: ${visible(queue.error)}</p>`;
  }
  return html`<div>
    <${Problems} rows=${[queue]} isOne />
    <${Numbers} queue=${queue} />
    <${Forecast} name=${name} version=${Math.sign(queue.delayed)} />
    <${History} name=${name} />
    ${queue.perPartition.length > 0 && html`<${PartitionsTable} partitions=${queue.perPartition} />`}
  </div>`;
}

function Numbers({ queue }) {
  const problemColumns = new Set(problemsOf(queue).map(({ column }) => column));
  const due = isKnown(queue.nextDeadline) ? relative(queue.nextDeadline, live.now()) : UNKNOWN;
  const numbers = [
    ["delayed", count(queue.delayed), `next ${due}`],
    ["overdue", count(queue.overdue), queue.overdue > 0 ? `by ${duration(queue.overdueBy)}` : ""],
    ["ready", count(queue.ready), ""],
    ["oldestReadyAge", duration(queue.oldestReadyAge), ""],
    ...(queue.kind === "reliable"
      ? [
          ["inFlight", count(queue.inFlight), ""],
          ["oldestInFlightAge", duration(queue.oldestInFlightAge), ""],
          ["retries", count(queue.retries), ""],
        ]
      : []),
    ["dead", count(queue.dead), ""],
    ["quarantined", count(queue.quarantined), ""],
    [
      "consumers",
      count(queue.consumers),
      isKnown(queue.consumers) ? "" : "unknown for plain queues",
    ],
    ["listeners", count(queue.listeners), "processes"],
  ];
  return html`<section aria-labelledby="numbers">
    <h2 id="numbers" class="unseen">Numbers</h2>
    <dl class="numbers">
      ${numbers.map(
        ([field, value, more]) =>
          html`<div key=${field} class=${problemColumns.has(field) ? "problem" : ""}>
            <dt>${LABELS[field]}</dt>
            <dd>${value}${" "}${more !== "" && html`<small>${more}</small>`}</dd>
          </div>`,
      )}
    </dl>
  </section>`;
}
