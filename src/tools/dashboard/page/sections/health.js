// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, many } from "../data/format.js";
import { problemsAmong, problemsOf } from "../data/problem.js";
import { addressAt, addressOf } from "../data/route.js";
import { Text, visible } from "../parts/text.js";

// Health comes first on every overview. A screen reader announces which queues have problems. The texts are left out of
// the announcement, because their numbers change all the time.

/** How many queues a problem names. */
const NAMED = 6;

/** What is wrong among all queues: one line for each kind of problem, with the queues that have it. */
export function Health({ rows }) {
  const kinds = problemsAmong(rows);
  const names = [...new Set(kinds.flatMap(({ queues }) => queues.map(({ row }) => row.name)))];
  const summary =
    names.length === 0
      ? `All well: ${many(rows.length, "queue")}, no problems.`
      : `${count(names.length)} of ${many(rows.length, "queue")} ${names.length === 1 ? "has" : "have"} problems`;
  return html`<${Frame} levels=${kinds.map(({ level }) => level)} summary=${summary} names=${names}>
    ${kinds.map(
      ({ name, level, title, page, queues }) =>
        html`<li key=${name} class=${level}>
          <span class="what">${title}</span>
          <span class="where">
            ${queues.slice(0, NAMED).map(
              ({ row, brief }) =>
                html`<span key=${row.name}
                  ><a href=${addressOf(row.name, page)}><${Text} of=${row.name} length=${40} /></a
                  >${" "}<span class="quiet">${visible(brief)}</span></span
                >`,
            )}
            ${
              queues.length > NAMED &&
              html`<a key="" href=${addressAt("queues", { show: name })}
                >and ${count(queues.length - NAMED)} more</a
              >`
            }
          </span>
        </li>`,
    )}
  <//>`;
}

/** What is wrong with one queue. */
export function QueueHealth({ row }) {
  const problems = problemsOf(row);
  if (problems.length === 0) return null;
  return html`<${Frame}
    levels=${problems.map(({ level }) => level)}
    summary=${many(problems.length, "problem")}
    names=${[]}
  >
    ${problems.map(
      ({ name, level, title, text, page }) =>
        html`<li key=${name} class=${level}>
          <span class="what">${title}</span>
          <span class="where">
            ${
              page === "overview"
                ? visible(text)
                : html`<a href=${addressOf(row.name, page)}>${visible(text)}</a>`
            }
          </span>
        </li>`,
    )}
  <//>`;
}

function Frame({ levels, summary, names, children }) {
  const level = levels.includes("error") ? "error" : levels.length > 0 ? "warning" : "well";
  return html`<section class=${`health card ${level}`} aria-label="Health">
    <p class="unseen" role="status">${summary} ${names.map(visible).join(", ")}</p>
    <p aria-hidden="true" class="summary">${summary}</p>
    ${
      levels.length > 0 &&
      html`<ul role="list">
        ${children}
      </ul>`
    }
  </section>`;
}
