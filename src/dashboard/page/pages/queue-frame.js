// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { count } from "../data/format.js";
import { useQueue } from "../data/live.js";
import { HOME, addressOf } from "../data/route.js";
import { useShell } from "../parts/shell.js";
import { Text, visible } from "../parts/text.js";

const TABS = [
  ["overview", "Overview"],
  ["messages", "Messages"],
  ["dead", "Dead letters", "dead"],
  ["quarantine", "Quarantine", "quarantined"],
  ["consumers", "Consumers", "consumers"],
];

/** What all pages of a queue have around them: its name, its pages, and the switch that pauses it. */
export function QueueFrame({ name, page, children }) {
  const queue = useQueue(name);
  const current = page === "message" ? "messages" : page;
  return html`<div>
    <p class="path"><a href=${HOME}>All queues</a></p>
    <div class="title">
      <h1 tabindex="-1"><${Text} of=${name} length=${200} /></h1>
      ${
        queue &&
        html`<p>
          ${queue.kind}${queue.partitions > 0 && `, ${queue.partitions} partitions`}${" "}${
            queue.isPaused && html`<strong class="badge">paused</strong>`
          }
        </p>`
      }
      <${PauseButton} name=${name} queue=${queue} />
    </div>
    <nav class="tabs" aria-label="Pages of this queue">
      <ul>
        ${TABS.map(
          ([tab, label, number]) =>
            html`<li key=${tab}>
              <a href=${addressOf(name, tab)} aria-current=${tab === current ? "page" : undefined}
                >${label}${" "}${
                  number !== undefined &&
                  queue?.[number] > 0 &&
                  html`<span class="count">${count(queue[number])}</span>`
                }</a
              >
            </li>`,
        )}
      </ul>
    </nav>
    ${children}
  </div>`;
}

function PauseButton({ name, queue }) {
  const { session, ask } = useShell();
  if (session.readOnly || queue === undefined) return null;
  const resume = {
    title: `Resume ${visible(name)}?`,
    text: "Messages that are due are moved, and ready ones are taken, at once.",
    verb: "Resume",
    act: async () => {
      await change(queuePath(name, "resume"));
      return `${visible(name)} goes on.`;
    },
  };
  const pause = {
    title: `Pause ${visible(name)}?`,
    text:
      "In every process nothing is moved and nothing is taken, until somebody resumes it. Offers go on, handlers that run " +
      "finish, and what falls due waits.",
    verb: "Pause",
    act: async () => {
      await change(queuePath(name, "pause"));
      return `${visible(name)} is paused.`;
    },
  };
  return html`<button type="button" onClick=${() => ask(queue.isPaused ? resume : pause)}>
    ${queue.isPaused ? "Resume" : "Pause"}
  </button>`;
}
