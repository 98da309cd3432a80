// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { UNKNOWN, count, duration, instantText, isKnown } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { COUNTS, DURATIONS, RATES } from "../data/scale.js";
import { Plot } from "../parts/plot.js";
import { StateLine } from "../parts/state-line.js";

/** How often to load the points (ms). The server adds one every ten seconds. */
const INTERVAL = 10_000;

/** The most rows in a plot's table, the latest. */
const MAX_ROWS = 60;

const rate = (value) => (isKnown(value) ? RATES.format(value) : "an unknown number");

const PLOTS = [
  {
    title: "Lateness",
    scale: DURATIONS,
    summarize: ({ overdue, overdueBy, oldestReadyAge }) =>
      `${overdue > 0 ? `overdue by ${duration(overdueBy)}` : "nothing overdue"}, ` +
      `${isKnown(oldestReadyAge) ? `the oldest ready for ${duration(oldestReadyAge)}` : "nothing known to be ready"}.`,
    lines: [
      ["overdueBy", "Most overdue", "problem"],
      ["oldestReadyAge", "Oldest ready", "ready"],
    ],
  },
  {
    title: "Throughput, per second",
    scale: RATES,
    summarize: ({ readied, finished }) =>
      isKnown(readied) || isKnown(finished)
        ? `${rate(readied)} became ready, ${rate(finished)} finished.`
        : "unknown.",
    lines: [
      ["readied", "Became ready", "ready"],
      ["finished", "Finished", "handled"],
    ],
  },
  {
    title: "Delayed",
    scale: COUNTS,
    summarize: ({ delayed, overdue }) => `${count(delayed)} delayed, ${count(overdue)} overdue.`,
    lines: [
      ["delayed", "Delayed", "delayed"],
      ["overdue", "Overdue", "problem"],
    ],
  },
  {
    title: "Ready, in flight, dead",
    scale: COUNTS,
    summarize: ({ ready, inFlight, dead }) =>
      `${count(ready)} ready, ${count(inFlight)} in flight, ${count(dead)} dead.`,
    lines: [
      ["ready", "Ready", "ready"],
      ["inFlight", "In flight", "in-flight"],
      ["dead", "Dead", "dead"],
    ],
  },
];

/** Plots of a queue's last hour, as far as this dashboard has read its numbers. */
export function History({ name }) {
  const loaded = useLoaded(queuePath(name, "history"), { every: INTERVAL });
  const points = loaded.data?.points ?? [];
  return html`<section aria-labelledby="history">
    <div class="head">
      <h2 id="history">The last hour</h2>
      <p>One point every ten seconds, while any page of this dashboard is open.</p>
    </div>
    <${StateLine}
      loaded=${loaded}
      isEmpty=${points.length === 0}
      empty="No data yet. The first point will appear within seconds."
    />
    ${
      points.length > 0 &&
      html`<div class="plots">
        ${PLOTS.map((plot) => html`<${TimePlot} key=${plot.title} points=${points} ...${plot} />`)}
      </div>`
    }
  </section>`;
}

function TimePlot({ points, title, scale, summarize, lines }) {
  const text = (value) => (isKnown(value) ? scale.format(value) : UNKNOWN);
  const rows = points
    .slice(-MAX_ROWS)
    .toReversed()
    .map((point) => [instantText(point.at), ...lines.map(([field]) => text(point[field]))]);
  const columns = ["Time", ...lines.map(([, label]) => label)];
  return html`<${Plot}
    title=${title}
    summary=${`Now: ${summarize(points.at(-1))}`}
    times=${points.map(({ at }) => at)}
    series=${lines.map(([field, label, colour]) => ({
      label,
      colour,
      values: points.map((point) => point[field] ?? null),
    }))}
    scale=${scale}
    table=${{ columns, rows }}
  />`;
}
