// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, many } from "../data/format.js";
import { Instant } from "../parts/instant.js";
import { Text } from "../parts/text.js";

/**
 * The failed attempts of a message, `{ attempt, at, reason }`, oldest first. The first `message.beforeRedrive` of them
 * preceded its last redrive. `shown` are the failures to list, from the first on.
 */
export function Failures({ message, shown = message.failures }) {
  return html`<ol class="failures" role="list">
    ${shown.map(
      ({ attempt, at, reason }, i) =>
        html`<li key=${i}>
          <span class="quiet"
            >Attempt ${count(attempt)}, <${Instant} at=${at} />${
              i < message.beforeRedrive ? ", before the redrive" : ""
            }${reason === "" ? "" : ":"}</span
          >${" "} ${reason !== "" && html`<${Text} of=${reason} length=${300} lines />`}
        </li>`,
    )}
  </ol>`;
}

/** Folds up the failures of a dead letter, except the fatal one, whose reason the page shows beside it. */
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
