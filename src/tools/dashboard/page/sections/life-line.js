// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, isKnown } from "../data/format.js";
import { ORDER, lifeOf } from "../data/life.js";
import { live } from "../data/live.js";
import { Instant } from "../parts/instant.js";
import { Text } from "../parts/text.js";

/** What is said of each moment in a message's life. */
const WORDS = {
  offered: () => "Offered",
  due: ({ isFuture }) => (isFuture ? "Will be due" : "Due"),
  ready: () => "Moved: became ready",
  taken: (moment) => html`<span>Taken by <${Taker} ...${moment} /></span>`,
  failed: ({ attempt }) => `Attempt ${count(attempt)} failed`,
  retry: ({ isFuture }) => (isFuture ? "Will be tried again" : "Due for another attempt"),
  "held back": () => "Held back until",
  died: () => "Became a dead letter",
  handled: ({ attempt }) => (isKnown(attempt) ? `Handled at attempt ${count(attempt)}` : "Handled"),
};

/** A message's life as a line from its offer to what is to come. */
export function LifeLine({ message }) {
  const moments = lifeOf(message, live.now());
  return html`<ol class="life" role="list" aria-label="Life of the message">
    ${moments.map(
      (moment, index) =>
        html`<li
          key=${index}
          class=${`is-${ORDER[moment.what]}${moment.isFuture ? " is-future" : ""}`}
        >
          <span class="what">${WORDS[moment.what](moment)}</span>
          <span class="when"><${Instant} at=${moment.at} /></span>
          <${Why}
            moment=${moment}
            moments=${moments}
            isBefore=${isBeforeRedrive(message, moment)}
          />
        </li>`,
    )}
  </ol>`;
}

function Why({ moment, moments, isBefore }) {
  const { what, reason } = moment;
  // A letter's last failure has the same reason.
  const isRepeated =
    what === "died" && moments.some((one) => one.what === "failed" && one.reason === reason);
  const words = isKnown(reason) && reason !== "" && !isRepeated;
  if (!words && !isBefore) return null;
  return html`<span class="why"
    >${isBefore && html`<span class="badge">before the redrive</span>`}${" "}${words && html`<${Text} of=${reason} length=${2_000} lines />`}</span
  >`;
}

/** Whether a failure preceded the last redrive. */
function isBeforeRedrive({ failures, beforeRedrive }, moment) {
  const index = failures.findIndex(
    ({ at, attempt }) => at === moment.at && attempt === moment.attempt,
  );
  return moment.what === "failed" && index >= 0 && index < beforeRedrive;
}

/** Who holds a message: host and process, or the consumer's name if another program made it. */
export function Taker({ host, pid, consumer, attempt }) {
  const who = isKnown(host)
    ? html`<strong><${Text} of=${host} /></strong>, process ${String(pid)}`
    : html`<strong><${Text} of=${consumer ?? "a consumer"} /></strong>`;
  return html`<span>${who}${isKnown(attempt) && `, attempt ${count(attempt)}`}</span>`;
}
