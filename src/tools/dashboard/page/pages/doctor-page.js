// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { read } from "../data/api.js";
import { duration } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { addressOf } from "../data/route.js";
import { Copy } from "../parts/copy.js";
import { Instant } from "../parts/instant.js";
import { Text } from "../parts/text.js";

/** How many queues a finding names. */
const NAMED = 12;

/** What the doctor finds in Redis and the queues: what it found lately, until somebody asks for more. */
export function DoctorPage() {
  const loaded = useLoaded("api/doctor/latest");
  const [asked, setAsked] = useState();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState();
  const examination = asked ?? loaded.data;
  const problem = failure ?? loaded.error;
  const isWorking = isBusy || loaded.isLoading;
  const examine = async () => {
    if (isWorking) return;
    setBusy(true);
    setFailure(undefined);
    try {
      setAsked(await read("api/doctor"));
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return html`<div>
    <div class="head">
      <h1 tabindex="-1">Doctor</h1>
      <p role="status">
        ${
          isWorking
            ? "Examining Redis and all queues…"
            : examination !== undefined &&
              html`<span
                >${examination.summary || "All well"}, ${" "}<${Instant} at=${examination.at} />,
                examined in ${duration(examination.took)}.</span
              >`
        }
      </p>
      <span class="end">
        <button
          type="button"
          class="main"
          aria-disabled=${isWorking}
          onClick=${() => void examine()}
        >
          ${isWorking ? "Working…" : "Examine again"}
        </button>
      </span>
    </div>
    ${problem !== undefined && html`<p class="failure" role="alert">Could not examine: ${problem.message}.</p>`}
    ${
      examination?.findings.length === 0 &&
      html`<p class="empty">All well: the doctor has found nothing.</p>`
    }
    ${examination?.findings.map((finding, index) => html`<${Finding} key=${index} finding=${finding} />`)}
  </div>`;
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
