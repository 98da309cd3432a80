// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, day, many, minute, utcDay } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { COUNTS } from "../data/scale.js";
import { Choice } from "../parts/choice.js";
import { Plot } from "../parts/plot.js";
import { StateLine } from "../parts/state-line.js";
import { Preview } from "./preview.js";

const SPANS = [
  ["hour", "Hour", "next hour"],
  ["day", "Day", "next day"],
  ["month", "Month", "next 30 days (UTC)"],
];

/** How often to load the forecast (ms). */
const INTERVAL = 15_000;

const COLUMNS = ["From", "To", "Messages"];

/** A histogram of the messages that become due in the next hour, day or month. */
export function Forecast({ name, version }) {
  const [span, setSpan] = useState("hour");
  const loaded = useLoaded(queuePath(name, "forecast", { span }), { every: INTERVAL, version });
  return html`<section aria-labelledby="forecast">
    <div class="head">
      <h2 id="forecast">Forecast</h2>
      <span class="end">
        <${Choice}
          label="Time span"
          options=${SPANS.map(([value, label]) => [value, label])}
          value=${span}
          onChange=${setSpan}
        />
      </span>
    </div>
    <${StateLine} loaded=${loaded} />
    ${loaded.data && html`<${Histogram} key=${span} span=${span} ...${loaded.data} />`}
    <${Preview} name=${name} span=${span} />
  </section>`;
}

function Histogram({ span, from, step, counts }) {
  const spanText = SPANS.find(([value]) => value === span)[2];
  const nameOf = (at) =>
    span === "hour" ? minute(at) : span === "day" ? `${day(at)} ${minute(at)}` : utcDay(at);
  const startOf = (index) => from + index * step;
  const total = counts.reduce((sum, number) => sum + number, 0);
  const peak = counts.indexOf(Math.max(...counts));
  const peakText = `; the peak is ${count(counts[peak])}, from ${nameOf(startOf(peak))}`;
  const rows = counts.flatMap((number, index) =>
    number === 0 ? [] : [[nameOf(startOf(index)), nameOf(startOf(index + 1)), count(number)]],
  );
  return html`<${Plot}
    title=${`Due in the ${spanText}`}
    summary=${`${many(total, "message")} due in the ${spanText}${total > 0 ? peakText : ""}.`}
    times=${counts.map((_, index) => startOf(index))}
    series=${[{ label: "Messages", values: counts, colour: "delayed" }]}
    isBars
    scale=${COUNTS}
    table=${{ columns: COLUMNS, rows }}
  />`;
}
