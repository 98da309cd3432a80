// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { UNKNOWN, count, duration, instantText, isKnown } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Plot } from "../parts/plot.js";
import { COUNTS, DURATIONS, RATES } from "../data/scale.js";
import { StateLine } from "../parts/state-line.js";

/** As often as the server notes a point. */
const EVERY = 10_000;

/** How many rows a plot's table has: the latest. */
const ROWS = 60;

const rate = (value) => (isKnown(value) ? RATES.format(value) : "not known how many");

const PLOTS = [
  {
    title: "Lateness",
    scale: DURATIONS,
    tell: ({ overdue, overdueBy, oldestReadyAge }) =>
      `${overdue > 0 ? `overdue by ${duration(overdueBy)}` : "none overdue"}, ` +
      `${isKnown(oldestReadyAge) ? `the oldest ready for ${duration(oldestReadyAge)}` : "none known to be ready"}.`,
    lines: [
      ["overdueBy", "Not moved for", "accent"],
      ["oldestReadyAge", "Not taken for", "quiet"],
    ],
  },
  {
    title: "Throughput, per second",
    scale: RATES,
    tell: ({ readied, finished }) =>
      isKnown(readied) || isKnown(finished)
        ? `${rate(readied)} became ready, ${rate(finished)} finished.`
        : "not known yet.",
    lines: [
      ["readied", "Became ready", "accent"],
      ["finished", "Finished", "quiet"],
    ],
  },
  {
    title: "Delayed",
    scale: COUNTS,
    tell: ({ delayed, overdue }) => `${count(delayed)} delayed, ${count(overdue)} overdue.`,
    lines: [
      ["delayed", "Delayed", "accent"],
      ["overdue", "Overdue", "quiet"],
    ],
  },
  {
    title: "Ready, in flight, dead",
    scale: COUNTS,
    tell: ({ ready, inFlight, dead }) =>
      `${count(ready)} ready, ${count(inFlight)} in flight, ${count(dead)} dead.`,
    lines: [
      ["ready", "Ready", "accent"],
      ["inFlight", "In flight", "strong"],
      ["dead", "Dead", "quiet"],
    ],
  },
];

/** The last hour of a queue, as far as this dashboard has looked. */
export function History({ name }) {
  const loaded = useLoaded(queuePath(name, "history"), { every: EVERY });
  const points = loaded.data?.points ?? [];
  return html`<section aria-labelledby="history">
    <h2 id="history">The last hour</h2>
    <p class="quiet">A point every ten seconds, since this dashboard first looked at the queue.</p>
    <${StateLine}
      loaded=${loaded}
      isEmpty=${points.length === 0}
      empty="No point was noted yet: the first comes within seconds."
    />
    ${
      points.length > 0 &&
      html`<div class="plots">
        ${PLOTS.map((plot) => html`<${TimePlot} key=${plot.title} points=${points} ...${plot} />`)}
      </div>`
    }
  </section>`;
}

function TimePlot({ points, title, scale, tell, lines }) {
  const text = (value) => (isKnown(value) ? scale.format(value) : UNKNOWN);
  const rows = points
    .slice(-ROWS)
    .toReversed()
    .map((point) => [instantText(point.at), ...lines.map(([field]) => text(point[field]))]);
  const columns = [{ label: "At" }, ...lines.map(([, label]) => ({ label, isNumber: true }))];
  return html`<${Plot}
    title=${title}
    summary=${`Now: ${tell(points.at(-1))}`}
    times=${points.map(({ at }) => at)}
    series=${lines.map(([field, label, tone]) => ({
      label,
      tone,
      values: points.map((point) => point[field] ?? null),
    }))}
    scale=${scale}
    table=${{ columns, rows }}
  />`;
}
