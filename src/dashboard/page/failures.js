// @ts-check
import { html } from "../vendor/preact-htm.js";
import { count, many } from "./format.js";
import { Instant } from "./instant.js";
import { Text } from "./text.js";

/** The attempts to handle a message that have failed, oldest first: `{ attempt, at, reason }` each; of `shown`, or of all. */
export function Failures({ message, shown = message.failures }) {
  const before = countBeforeRedrive(message);
  return html`<ol class="failures" role="list">
    ${shown.map(
      ({ attempt, at, reason }, i) =>
        html`<li key=${i}>
          <span class="quiet"
            >Attempt ${count(attempt)}, <${Instant} at=${at} />${
              i < before ? ", before the redrive" : ""
            }${reason === "" ? "" : ":"}</span
          >${" "} ${reason !== "" && html`<${Text} of=${reason} length=${300} lines />`}
        </li>`,
    )}
  </ol>`;
}

/** How many of them were before the message was redriven the last time: its attempts began anew at 1 then. */
function countBeforeRedrive({ failures, attempts, state }) {
  // The attempt that is being made has not failed.
  const last = state === "in flight" ? attempts - 1 : attempts;
  let before = failures.length;
  while (before > 0) {
    const { attempt } = failures[before - 1];
    if (attempt > last || attempt >= (failures[before]?.attempt ?? Infinity)) break;
    before--;
  }
  return before;
}

/** Those before the last one, of which a letter died and which is told beside; shown when it is asked for. */
export function EarlierFailures({ letter }) {
  const { failures, attempts } = letter;
  const isLast = failures.at(-1)?.attempt === attempts;
  const earlier = isLast ? failures.slice(0, -1) : failures;
  if (earlier.length === 0) return null;
  return html`<details>
    <summary>${many(earlier.length, "earlier failure")}</summary>
    <${Failures} message=${letter} shown=${earlier} />
  </details>`;
}
