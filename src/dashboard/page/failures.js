// @ts-check
import { html } from "../vendor/preact-htm.js";
import { count, many } from "./format.js";
import { Instant } from "./instant.js";
import { Text } from "./text.js";

/** The attempts to handle a message that have failed, oldest first: `{ attempt, at, reason }` each. */
export function Failures({ failures }) {
  return html`<ol class="failures" role="list">
    ${failures.map(
      ({ attempt, at, reason }, i) =>
        html`<li key=${i}>
          <span class="quiet">Attempt ${count(attempt)}, <${Instant} at=${at} />:</span>${" "}
          <${Text} of=${reason} length=${300} lines />
        </li>`,
    )}
  </ol>`;
}

/** Those before the last one, of which a letter died and which is told beside; shown when it is asked for. */
export function EarlierFailures({ letter: { failures, attempts } }) {
  const isLast = failures.at(-1)?.attempt === attempts;
  const earlier = isLast ? failures.slice(0, -1) : failures;
  if (earlier.length === 0) return null;
  return html`<details>
    <summary>${many(earlier.length, "earlier failure")}</summary>
    <${Failures} failures=${earlier} />
  </details>`;
}
