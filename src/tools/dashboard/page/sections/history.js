// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { UNKNOWN, count, duration, instantText, isKnown } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { COUNTS, DURATIONS, RATES } from "../data/scale.js";
import { Plot } from "../parts/plot.js";
import { StateLine } from "../parts/state-line.js";
import { SPANS_BACK, SpanChoice } from "./span-choice.js";

/** The most rows in a plot's table, the latest. */
const MAX_ROWS = 60;

const rate = (value) => (isKnown(value) ? RATES.format(value) : "an unknown number");

/** The plots; a line of which nothing is known is left out. */
const PLOTS = [
  {
    title: "Lateness",
    scale: DURATIONS,
    summarize: ({ overdue, overdueBy, oldestReadyAge }) =>
      `${overdue > 0 ? `overdue by ${duration(overdueBy)}` : "nothing overdue"}, ` +
      `${isKnown(oldestReadyAge) ? `the oldest ready for ${duration(oldestReadyAge)}` : "nothing known to be ready"}.`,
    lines: [["late", "Longest wait since due", "problem"]],
  },
  {
    title: "Throughput",
    isRate: true,
    scale: RATES,
    summarize: ({ readied, finished }) =>
      isKnown(readied) || isKnown(finished)
        ? `${rate(readied)} became ready, ${rate(finished)} finished a second.`
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
    title: "Ready, in flight, retrying, dead",
    scale: COUNTS,
    summarize: ({ ready, inFlight, retries, dead }) =>
      `${count(ready)} ready, ${count(inFlight)} in flight, ${count(retries)} retrying, ${count(dead)} dead.`,
    lines: [
      ["ready", "Ready", "ready"],
      ["inFlight", "In flight", "in-flight"],
      ["retries", "Retrying", "retrying"],
      ["dead", "Dead", "dead"],
    ],
  },
];

/** Plots of a queue's past: an hour, a day or 90 days. */
export function History({ name }) {
  const [span, setSpan] = useState("hour");
  const { every, unit, seconds } = SPANS_BACK[span];
  const loaded = useLoaded(queuePath(name, "history", { span }), { every });
  const points = loaded.data?.points ?? [];
  return html`<section aria-labelledby="history">
    <div class="head">
      <h2 id="history">History</h2>
      <span class="end"
        ><${SpanChoice} span=${span} past=${loaded.data} onChange=${setSpan}
      /></span>
    </div>
    <${StateLine}
      loaded=${loaded}
      isEmpty=${points.length === 0}
      empty="No data yet. The first point will appear within seconds."
    />
    ${
      points.length > 0 &&
      html`<div class="plots">
        ${PLOTS.map(
          ({ title, isRate, summarize, ...plot }) =>
            html`<${TimePlot}
              key=${title}
              title=${isRate ? `${title}, per ${unit}` : title}
              points=${points}
              factor=${isRate ? seconds : 1}
              summarize=${span === "hour" ? () => `Now: ${summarize(points.at(-1))}` : summaryOf}
              ...${plot}
            />`,
        )}
      </div>`
    }
  </section>`;
}

/** A plot of points; values are multiplied by `factor`. `summarize` gets the lines of which anything is known. */
export function TimePlot({ points, title, factor = 1, scale, summarize, lines: all }) {
  const lines = all
    .filter(([field]) => points.some((point) => isKnown(point[field])))
    .map(([field, label, colour]) => {
      const values = points.map((point) => (isKnown(point[field]) ? point[field] * factor : null));
      return { label, colour, values };
    });
  const text = (value) => (isKnown(value) ? scale.format(value) : UNKNOWN);
  const first = Math.max(0, points.length - MAX_ROWS);
  const rows = points
    .slice(first)
    .map(({ at }, i) => [instantText(at), ...lines.map(({ values }) => text(values[first + i]))])
    .toReversed();
  return html`<${Plot}
    title=${title}
    summary=${summarize(lines, text)}
    times=${points.map(({ at }) => at)}
    series=${lines}
    scale=${scale}
    table=${{ columns: ["Time", ...lines.map(({ label }) => label)], rows }}
  />`;
}

/** The most of each line. */
function summaryOf(lines, text) {
  const most = lines.map(
    ({ label, values }) => `${label.toLowerCase()} ${text(Math.max(...values.map(Number)))}`,
  );
  return most.length === 0 ? "Unknown." : `At most: ${most.join(", ")}.`;
}
