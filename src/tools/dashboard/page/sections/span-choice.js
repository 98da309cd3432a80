// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { Choice } from "../parts/choice.js";
import { visible } from "../parts/text.js";

/**
 * How far back lines and plots look:
 * - `unit`, `seconds`: of rates in its plots
 * - `every`: how often to load the points (ms); in the last hour the server adds one every ten seconds
 */
export const SPANS_BACK = {
  hour: { label: "Hour", unit: "second", seconds: 1, every: 10_000 },
  day: { label: "Day", unit: "minute", seconds: 60, every: 60_000 },
  quarter: { label: "90 days", unit: "day", seconds: 86_400, every: 60_000 },
};

/** Chooses how far back to look. `past` is what was loaded: it tells whether Redis has it, and if not, why. */
export function SpanChoice({ span, past, onChange }) {
  return html`<div class="span-back">
    <p class="quiet">
      ${past?.isKept === false && `History of this process only${past.whyNot ? `: ${visible(past.whyNot)}` : ""}.`}
    </p>
    <${Choice}
      label="How far back"
      options=${Object.entries(SPANS_BACK).map(([value, { label }]) => [value, label])}
      value=${span}
      onChange=${onChange}
    />
  </div>`;
}
