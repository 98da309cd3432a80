// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, duration, many } from "../data/format.js";
import { problemsAmong, problemsOf } from "../data/problem.js";
import { live } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { addressAt, addressOf } from "../data/route.js";
import { isSilent, titleOf } from "../data/trouble.js";
import { Instant } from "../parts/instant.js";
import { Text, visible } from "../parts/text.js";

// Health comes first on every overview. A screen reader announces which queues have problems. The texts are left out of
// the announcement, because their numbers change all the time.

/** How many queues a problem names. */
const NAMED = 6;

/** How often to ask what the doctor found lately (ms): see readings/doctor.ts for how often it examines. */
const INTERVAL = 60_000;

/**
 * What is wrong: with Redis itself, the worst that the doctor found, and among all queues one line for each kind of
 * problem, with the queues that have it. While Redis does not answer, what was wrong with queues is not known to be so still.
 */
export function Health({ rows, trouble }) {
  const examination = useLoaded("api/doctor/latest", { every: INTERVAL }).data;
  // What is wrong with Redis is known already.
  const lead = trouble === undefined ? examination?.lead : undefined;
  const kinds = isSilent(trouble) ? [] : problemsAmong(rows);
  const names = [...new Set(kinds.flatMap(({ queues }) => queues.map(({ row }) => row.name)))];
  const well = lead
    ? `The doctor found ${examination.summary}`
    : `All well: ${many(rows.length, "queue")}, no problems.`;
  const ill = `${count(names.length)} of ${many(rows.length, "queue")} ${names.length === 1 ? "has" : "have"} problems`;
  const levels = [trouble, lead, ...kinds].filter(Boolean).map(({ level }) => level);
  const summary =
    trouble !== undefined ? titleOf(trouble, live.now()) : names.length > 0 ? ill : well;
  const found = html`<${DoctorLine} key="doctor" examination=${examination} />`;
  return html`<${Frame} levels=${levels} summary=${summary} names=${names}>
    ${trouble !== undefined && html`<${TroubleLine} key="" trouble=${trouble} hasRows=${rows.length > 0} />`}
    ${lead?.level === "error" && found}
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
    ${lead?.level === "warning" && found}
  <//>`;
}

function DoctorLine({ examination: { lead, summary, at } }) {
  return html`<li class=${lead.level}>
    <span class="what">Doctor</span>
    <span class="where">
      <a href=${addressAt("doctor")}><${Text} of=${lead.what} length=${200} /></a>
      <span class="quiet">${summary}, ${" "}<${Instant} at=${at} /></span>
    </span>
  </li>`;
}

function TroubleLine({ trouble, hasRows }) {
  const { level, since, text } = trouble;
  return html`<li class=${level}>
    <span class="what">Redis</span>
    <span class="where">
      <span role="alert">${visible(text)}</span>
      ${isSilent(trouble) && hasRows && html`<span>The numbers below are ${duration(live.now() - since)} old.</span>`}
    </span>
  </li>`;
}

/** What is wrong with Redis itself, above the pages of a queue. */
export function RedisTrouble({ trouble }) {
  if (trouble === undefined) return null;
  return html`<p class="failure" role="alert">
    ${titleOf(trouble, live.now())}. ${visible(trouble.text)}
  </p>`;
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
