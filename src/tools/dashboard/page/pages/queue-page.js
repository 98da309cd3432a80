// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, clock, count, duration, isKnown, relative, second } from "../data/format.js";
import { live, useQueue } from "../data/live.js";
import { LABELS } from "../data/numbers.js";
import { problemColumnsOf } from "../data/problem.js";
import { visible } from "../parts/text.js";
import { Tile } from "../parts/tile.js";
import { Flow } from "../sections/flow.js";
import { Forecast } from "../sections/forecast.js";
import { History } from "../sections/history.js";
import { PartitionsTable } from "../sections/partitions-table.js";
import { QueueHealth } from "../sections/health.js";

/** The overview of a queue: its problems, numbers, flow, forecast, last hour and partitions. */
export function QueuePage({ name }) {
  const queue = useQueue(name);
  if (queue === undefined) return html`<p class="quiet">Loading…</p>`;
  if (queue.isMissing) return html`<div></div>`;
  if (queue.error !== undefined) {
    return html`<p class="failure" role="alert">Could not be read: ${visible(queue.error)}</p>`;
  }
  return html`<div>
    <${QueueHealth} row=${queue} />
    <${Numbers} queue=${queue} />
    <${Flow} name=${name} />
    <${Forecast} name=${name} version=${Math.sign(queue.delayed)} />
    <${History} name=${name} />
    ${queue.perPartition.length > 0 && html`<${PartitionsTable} partitions=${queue.perPartition} />`}
  </div>`;
}

function Numbers({ queue }) {
  const problems = problemColumnsOf(queue);
  const due = isKnown(queue.nextDeadline) ? relative(queue.nextDeadline, live.now()) : UNKNOWN;
  const tiles = [
    [
      "nextDeadline",
      due,
      isKnown(queue.nextDeadline) ? clock(queue.nextDeadline, live.now(), second) : "",
    ],
    ["overdue", count(queue.overdue), queue.overdue > 0 ? `by ${duration(queue.overdueBy)}` : ""],
    ["oldestReadyAge", duration(queue.oldestReadyAge)],
    ...(queue.kind === "reliable"
      ? [["oldestInFlightAge", duration(queue.oldestInFlightAge)]]
      : []),
    ["consumers", count(queue.consumers), isKnown(queue.consumers) ? "" : "unknown to Redis"],
    ["listeners", count(queue.listeners), "processes"],
  ];
  return html`<section aria-labelledby="numbers">
    <h2 id="numbers" class="unseen">Numbers</h2>
    <dl class="tiles card">
      ${tiles.map(
        ([field, value, more]) =>
          html`<${Tile}
            key=${field}
            label=${LABELS[field]}
            value=${value}
            more=${more}
            isProblem=${problems.has(field)}
          />`,
      )}
    </dl>
  </section>`;
}
