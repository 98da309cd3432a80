// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { many } from "../data/format.js";
import { problemsOf } from "../data/problem.js";
import { addressOf } from "../data/route.js";
import { Text, visible } from "../parts/text.js";

/**
 * The problems of queues, each with a link to the page with more details. A screen reader announces which queues have
 * problems. The texts are left out of the announcement, because their numbers change all the time.
 */
export function Problems({ rows, isOne = false }) {
  const found = rows.flatMap((row) => problemsOf(row).map((problem) => ({ row, ...problem })));
  const names = [...new Set(found.map(({ row }) => row.name))];
  const summary =
    found.length === 0
      ? "No problems."
      : isOne
        ? "This queue has problems."
        : `${many(names.length, "queue")} ${names.length === 1 ? "has" : "have"} problems.`;
  const spoken =
    isOne || names.length === 0 ? summary : `${summary} ${names.map(visible).join(", ")}`;
  return html`<section
    class=${found.length === 0 ? "problems none" : "problems"}
    aria-label="Problems"
  >
    <p class="unseen" role="status">${spoken}</p>
    <p aria-hidden="true" class="summary">${summary}</p>
    ${
      found.length > 0 &&
      html`<ul>
        ${found.map(
          ({ row, column, text, page }) =>
            html`<li key=${`${row.name} ${column}`}>
              ${!isOne && html`<${Text} of=${row.name} length=${60} />: `}
              ${
                isOne && (page === undefined || page === "overview")
                  ? visible(text)
                  : html`<a href=${addressOf(row.name, page)}>${visible(text)}</a>`
              }
            </li>`,
        )}
      </ul>`
    }
  </section>`;
}
