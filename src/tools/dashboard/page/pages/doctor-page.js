// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { read } from "../data/api.js";
import { duration, many } from "../data/format.js";
import { addressOf } from "../data/route.js";
import { Copy } from "../parts/copy.js";
import { Instant } from "../parts/instant.js";
import { Text } from "../parts/text.js";

const LEVELS = ["error", "warning", "notice"];

/** How many queues a finding names. */
const NAMED = 12;

/** The last examination, which stays while other views are open. */
let latest;

/** What the doctor finds in Redis and the queues, when somebody asks it. */
export function DoctorPage() {
  const [examination, setExamination] = useState(latest);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState();
  const examine = async () => {
    if (isBusy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      latest = await read("api/doctor");
      setExamination(latest);
    } catch (error) {
      setFailure(error.message);
    } finally {
      setBusy(false);
    }
  };
  return html`<div>
    <div class="head">
      <h1 tabindex="-1">Doctor</h1>
      <p role="status">
        ${
          isBusy
            ? "Examining Redis and all queues…"
            : examination
              ? html`<span
                  >${summaryOf(examination.findings)} <${Instant} at=${examination.at} />, in
                  ${" "}${duration(examination.took)}.</span
                >`
              : "Looks for what stops queues or loses messages, and says how to repair it. It changes nothing."
        }
      </p>
      <span class="end">
        <button type="button" class="main" aria-disabled=${isBusy} onClick=${() => void examine()}>
          ${isBusy ? "Working…" : examination ? "Examine again" : "Examine now"}
        </button>
      </span>
    </div>
    ${failure !== undefined && html`<p class="failure" role="alert">Could not examine: ${failure}.</p>`}
    ${
      examination === undefined && !isBusy
        ? html`<p class="empty">
            Not examined yet. An examination reads the settings of each server and some keys of each
            queue, in short steps.
          </p>`
        : examination?.findings.length === 0
          ? html`<p class="empty">All well: the doctor has found nothing.</p>`
          : html`<div>
              ${(examination?.findings ?? [])
                .toSorted((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level))
                .map((finding, index) => html`<${Finding} key=${index} finding=${finding} />`)}
            </div>`
    }
  </div>`;
}

function summaryOf(findings) {
  const numbers = LEVELS.map((level) => [
    findings.filter((one) => one.level === level).length,
    level,
  ]).filter(([number]) => number > 0);
  const texts = numbers.map(([number, level]) => many(number, level));
  return texts.length === 0 ? "All well" : texts.join(", ");
}

function Finding({ finding: { level, check, queue, queues, what, why, repair } }) {
  const names = queues ?? (queue ? [queue] : []);
  return html`<article class=${`finding card is-${level}`} aria-label=${`${level}: ${check}`}>
    <p class="kind"><span class="level">${level}</span> <span class="badge">${check}</span></p>
    <h2><${Text} of=${what} length=${600} /></h2>
    <p class="quiet"><${Text} of=${why} length=${1_000} /></p>
    ${
      names.length > 0 &&
      html`<p class="tools">
        ${names
          .slice(0, NAMED)
          .map(
            (name) =>
              html`<a key=${name} href=${addressOf(name)}><${Text} of=${name} length=${60} /></a>`,
          )}
        ${names.length > NAMED && html`<span key="" class="quiet">and ${names.length - NAMED} more</span>`}
      </p>`
    }
    <h3>Repair</h3>
    <${Repair} of=${repair} />
  </article>`;
}

/** A repair: prose, with each of its commands, which stand in backticks, in a block of its own to copy. */
function Repair({ of }) {
  return html`<div class="repair">
    ${of.split(/\s*`([^`]*)`\s*/u).map((text, index) =>
      index % 2 === 1
        ? html`<${Copy} key=${index} text=${text} />`
        : text !== "" &&
          html`<p key=${index}>
            <${Text} of=${text.replace(/^[;,]\s*/u, "")} length=${2_000} />
          </p>`,
    )}
  </div>`;
}
