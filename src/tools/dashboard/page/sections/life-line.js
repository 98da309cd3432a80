// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, isKnown } from "../data/format.js";
import { live } from "../data/live.js";
import { Instant } from "../parts/instant.js";
import { Text } from "../parts/text.js";

/** What is said of each moment in a message's life, and the slug of the state whose colour it has. */
const MOMENTS = {
  offered: ["delayed", () => "Offered"],
  due: ["ready", ({ isFuture }) => (isFuture ? "Will be due" : "Due")],
  ready: ["ready", () => "Moved: became ready"],
  taken: ["in-flight", (moment) => html`<span>Taken by <${Taker} ...${moment} /></span>`],
  failed: ["retrying", ({ attempt }) => `Attempt ${count(attempt)} failed`],
  retry: [
    "retrying",
    ({ isFuture, attempt }) =>
      isFuture ? `Attempt ${count(attempt)} will begin` : `Attempt ${count(attempt)} is due`,
  ],
  died: ["dead", () => "Became a dead letter"],
  dropped: ["gone", () => "Dropped"],
  handled: ["handled", (moment) => html`<span>Handled by <${Taker} ...${moment} /></span>`],
};

/** A message's life as a line from its offer to what is to come. */
export function LifeLine({ message: { life } }) {
  const now = live.now();
  return html`<ol class="life" role="list" aria-label="Life of the message">
    ${life.map((moment, index) => {
      const [slug, write] = MOMENTS[moment.what];
      const isFuture = moment.at > now;
      return html`<li key=${index} class=${`is-${slug}${isFuture ? " is-future" : ""}`}>
        <span class="what">${write({ ...moment, isFuture })}</span>
        <span class="when"><${Instant} at=${moment.at} isExact /></span>
        <${Why} moment=${moment} before=${life[index - 1]} />
      </li>`;
    })}
  </ol>`;
}

/** Why an attempt failed or a message died. A letter's last failure has the same reason, which is not repeated. */
function Why({ moment: { what, reason, isBeforeRedrive }, before }) {
  const isRepeated = what === "died" && reason === before?.reason;
  const isShown = isKnown(reason) && reason !== "" && !isRepeated;
  if (!isShown && !isBeforeRedrive) return null;
  return html`<span class="why"
    >${isBeforeRedrive && html`<span class="badge">before the redrive</span>`}${" "}${isShown && html`<${Text} of=${reason} length=${2_000} lines />`}</span
  >`;
}

/** Who holds a message: host and process, or the consumer's name if another program made it. */
export function Taker({ host, pid, consumer, attempt }) {
  const who = isKnown(host)
    ? html`<strong><${Text} of=${host} /></strong>, process ${String(pid)}`
    : html`<strong><${Text} of=${consumer ?? "a consumer"} /></strong>`;
  return html`<span>${who}${isKnown(attempt) && `, attempt ${count(attempt)}`}</span>`;
}
