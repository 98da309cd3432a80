// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { clock, count, instantText, isKnown, many, second } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { live } from "../data/live.js";
import { COUNTS } from "../data/scale.js";
import { Plot } from "../parts/plot.js";
import { StateLine } from "../parts/state-line.js";

/** How often to load it (ms): it may read many messages. */
const INTERVAL = 60_000;

const PER = [
  [1_000, "second"],
  [60_000, "minute"],
  [3_600_000, "hour"],
];

/**
 * What if so many became ready per second: what falls due in a `span` of the forecast, what becomes ready, and what waits, with
 * the rate that somebody types in, or, without one, with the present flow. Loads nothing before that.
 */
export function Preview({ name, span }) {
  const [tried, setTried] = useState();
  const path = tried && queuePath(name, "preview", { span, ...tried });
  const loaded = useLoaded(path, { every: INTERVAL });
  const show = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const rate = form.get("rate");
    setTried(rate === "" ? {} : { rate, per: form.get("per") });
  };
  return html`<section aria-labelledby="preview">
    <h3 id="preview">What if</h3>
    <form class="tools" onSubmit=${show}>
      <input
        name="rate"
        type="number"
        min="1"
        max="1000000"
        aria-label="Messages that may become ready"
        placeholder="present flow"
      />
      <label>
        per${" "}
        <select name="per" aria-label="In each">
          ${PER.map(([length, label]) => html`<option key=${label} value=${length}>${label}</option>`)}
        </select>
      </label>
      <button type="submit">Show</button>
      <span class="quiet">Shows what would become ready at this rate, and sets nothing.</span>
    </form>
    ${tried && html`<${StateLine} loaded=${loaded} />`}
    ${loaded.data && html`<${Shaped} ...${loaded.data} />`}
  </section>`;
}

function Shaped({ flow, spans, endsAt, seenUntil }) {
  const lines = [
    ["due", "Due", "delayed"],
    ["ready", "Ready", "ready"],
    ["waiting", "Waiting", "retrying"],
  ];
  const sum = (field) => spans.reduce((total, span) => total + span[field], 0);
  const end = isKnown(endsAt)
    ? `all ready by ${clock(endsAt, live.now(), second)}`
    : `${many(spans.at(-1).waiting, "message")} waiting at the end`;
  return html`<${Plot}
      title=${isKnown(flow) ? `With ${flow}` : "Without a flow"}
      summary=${`${count(sum("due"))} due, ${count(sum("ready"))} ready, ${end}.`}
      times=${spans.map(({ at }) => at)}
      series=${lines.map(([field, label, colour]) => ({
        label,
        colour,
        values: spans.map((span) => span[field]),
      }))}
      scale=${COUNTS}
      table=${{
        columns: ["From", ...lines.map(([, label]) => label)],
        rows: spans
          .filter(({ due, ready, waiting }) => due + ready + waiting > 0)
          .map((span) => [instantText(span.at), ...lines.map(([field]) => count(span[field]))]),
      }}
    />
    ${
      isKnown(seenUntil) &&
      html`<p class="quiet">
        Only what is due by ${instantText(seenUntil)} was looked at: there is too much.
      </p>`
    }`;
}
