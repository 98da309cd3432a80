// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { count, many } from "../data/format.js";
import { useLive, useQueue } from "../data/live.js";
import { HOME, addressOf } from "../data/route.js";
import { STATES } from "../data/states.js";
import { isSilent } from "../data/trouble.js";
import { useShell } from "../parts/shell.js";
import { Text, visible } from "../parts/text.js";
import { RedisTrouble } from "../sections/health.js";

/**
 * The pages, with the number that a tab shows if it is above 0.
 *
 * @type {{ page: string, label: string, number?: string, state?: string }[]}
 */
const TABS = [
  { page: "overview", label: "Overview" },
  ...Object.values(STATES).map(({ slug, label, number }) => ({
    page: slug,
    label,
    number,
    state: slug,
  })),
  { page: "consumers", label: "Consumers", number: "consumers" },
  { page: "schedules", label: "Schedules", number: "schedules" },
  { page: "log", label: "Log" },
];

/** The pages that say nothing of a plain queue: Redis does not know who has taken its messages. */
const RELIABLE = new Set(["in-flight", "retrying", "dead", "consumers"]);

/** The frame around all pages of a queue: its name, its tabs, and the button that pauses it. */
export function QueueFrame({ name, page, children }) {
  const queue = useQueue(name);
  const { trouble } = useLive();
  const tabs = TABS.filter(
    (tab) =>
      tab.page === page ||
      (tab.page === "schedules"
        ? queue?.schedules > 0
        : queue?.kind !== "plain" || !RELIABLE.has(tab.page)),
  );
  return html`<div>
    <p class="path"><a href=${HOME}>Queues</a></p>
    <div class="head">
      <h1 tabindex="-1"><${Text} of=${name} length=${200} /></h1>
      ${
        queue &&
        !queue.isMissing &&
        html`<p>
          ${queue.isPaused && html`<span class="badge warning">paused</span>`}${" "}
          ${queue.isPaused && queue.pauseReason && html`<span><${Text} of=${queue.pauseReason} length=${200} /></span>`}${" "}
          <span class="badge">${queue.kind}</span>${" "}
          ${queue.partitions > 0 && html`<span class="badge">${many(queue.partitions, "partition")}</span>`}
        </p>`
      }
      <span class="end"><${PauseButton} name=${name} queue=${queue} /></span>
    </div>
    ${
      queue?.isMissing &&
      html`<p class="empty">
        This Redis has no queue of this name. A queue appears when a message is offered to it; or it
        is in another database, or under another key prefix.
      </p>`
    }
    <nav class="tabs" aria-label="Pages of this queue">
      <ul>
        ${tabs.map(
          (tab) =>
            html`<li key=${tab.page}>
              <a
                href=${addressOf(name, tab.page)}
                aria-current=${tab.page === page ? "page" : undefined}
                ><span class=${tab.state === undefined ? "" : `state is-${tab.state}`}
                  >${tab.label}</span
                >${" "}${
                  tab.number !== undefined &&
                  queue?.[tab.number] > 0 &&
                  html`<span class="count">${count(queue[tab.number])}</span>`
                }</a
              >
            </li>`,
        )}
      </ul>
    </nav>
    <${RedisTrouble} trouble=${trouble} />
    <div class=${isSilent(trouble) ? "stale" : ""}>${children}</div>
  </div>`;
}

function PauseButton({ name, queue }) {
  const { session, ask } = useShell();
  if (session.readOnly || queue === undefined || queue.isMissing) return null;
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
