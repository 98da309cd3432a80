// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { isKnown } from "../data/format.js";
import { RATES } from "../data/scale.js";
import { TimePlot } from "./history.js";

const LINES = [
  ["readied", "Became ready", "ready"],
  ["finished", "Finished", "handled"],
  ["failed", "Failed", "dead"],
];

/** How many messages of all queues became ready, finished and failed: `lines` as the server has them. */
export function Traffic({ span, lines }) {
  if (lines === undefined) return null;
  const { from, step, totals } = lines;
  const all = totals.finished.map((finished, i) => {
    const [readied, failed] = [totals.readied[i], totals.failed[i]];
    return { at: from + i * step, readied, finished, failed };
  });
  // Nothing was read before the first known point.
  const points = all.slice(all.findIndex((point) => isCounted(point)));
  if (!points.some(isCounted)) {
    return html`<p class="quiet">
      What became ready and finished is not known yet. Of plain queues Redis does not count it.
    </p>`;
  }
  const unit = span === "quarter" ? "day" : "minute";
  return html`<div class="section">
    <${TimePlot}
      title=${`Messages of all queues, per ${unit}`}
      points=${points}
      scale=${RATES}
      summarize=${(shown, text) => `The latest ${unit}: ${latest(shown, text)}.`}
      lines=${LINES}
    />
  </div>`;
}

function latest(shown, text) {
  return shown
    .map(({ label, values }) => `${text(values.findLast(isKnown))} ${label.toLowerCase()}`)
    .join(", ");
}

function isCounted({ readied, finished }) {
  return isKnown(readied) || isKnown(finished);
}
