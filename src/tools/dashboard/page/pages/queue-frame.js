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

/** The frame around all pages of a queue: its name, its tabs, and the button that pauses it. */
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
    text: "Due messages become ready, and consumers take messages again.",
    verb: "Resume",
    act: async () => {
      await change(queuePath(name, "resume"));
      return `${visible(name)} was resumed.`;
    },
  };
  const pause = {
    title: `Pause ${visible(name)}?`,
    text:
      "Until someone resumes the queue, no process makes messages ready or takes them. Offers still work, running " +
      "handlers finish, and due messages wait.",
    verb: "Pause",
    act: async () => {
      await change(queuePath(name, "pause"));
      return `${visible(name)} was paused.`;
    },
  };
  return html`<button type="button" onClick=${() => ask(queue.isPaused ? resume : pause)}>
    ${queue.isPaused ? "Resume" : "Pause"}
  </button>`;
}
