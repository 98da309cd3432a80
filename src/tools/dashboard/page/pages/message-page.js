// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, isKnown, size } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Instant } from "../parts/instant.js";
import { Payload, PayloadSwitch } from "../parts/payload.js";
import { useShell } from "../parts/shell.js";
import { StateLine } from "../parts/state-line.js";
import { Text } from "../parts/text.js";
import { Failures } from "../sections/failures.js";
import { MessageActions } from "../sections/message-actions.js";

/** How often to load the message (ms). */
const INTERVAL = 1_500;

/** The meaning of each state. */
const STATES = {
  delayed: "Waiting for its deadline.",
  retrying: "An attempt failed. Waiting for the next one.",
  ready: "Due, and not taken yet.",
  "in flight": "A consumer is handling it.",
  dead: "Not delivered again unless someone redrives it.",
  gone: "Not found: it was handled, cancelled or never offered, or is in another database or under another key prefix.",
};

/** One message, by id or key: its state, its details and its failed attempts. */
export function MessagePage({ name, params }) {
  const { id, key } = params;
  const { session } = useShell();
  const [isShown, setShown] = useState(false);
  const payload = isShown ? "1" : undefined;
  const loaded = useLoaded(queuePath(name, "message", { id, key, payload }), { every: INTERVAL });
  const message = loaded.data;
  return html`<div>
    <h2>Message <${Text} of=${message?.key ?? key ?? id ?? ""} /></h2>
    <${StateLine} loaded=${loaded} />
    ${message && html`<${State} message=${message} />`}
    ${
      message && html`<${MessageActions} name=${name} message=${message} reload=${loaded.reload} />`
    }
    ${message && html`<${Details} message=${message} />`}
    ${
      message?.failures.length > 0 &&
      html`<section>
        <h3>Failed attempts</h3>
        <${Failures} message=${message} />
      </section>`
    }
    ${message && html`<${Headers} headers=${message.headers} />`}
    ${
      message &&
      message.state !== "gone" &&
      html`<section>
        <h3>Payload</h3>
        <p>${size(message.size)}</p>
        <${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />
        ${isShown && message.payload && html`<${Payload} payload=${message.payload} />`}
      </section>`
    }
  </div>`;
}

function State({ message: { state, mayBeReady } }) {
  const more = mayBeReady
    ? " Or it is ready: ready messages of a plain queue have no id and no key."
    : "";
  return html`<p class=${state === "dead" ? "place problem" : "place"} role="status">
    <strong>${state}</strong> ${STATES[state]}${more}
  </p>`;
}

function text(value, length) {
  return isKnown(value) && html`<${Text} of=${value} length=${length} lines />`;
}

function instant(value) {
  return isKnown(value) && html`<${Instant} at=${value} />`;
}

function Details({ message }) {
  const { id, key, deadline, offeredAt, attempts, heldBackUntil, consumer, since } = message;
  const { host, pid, reason, group, diedAt } = message;
  const details = [
    ["Id", text(id)],
    ["Key", text(key, 1_000)],
    ["Offered", instant(offeredAt)],
    ["Due", instant(deadline)],
    ["Attempts", isKnown(attempts) && message.state !== "gone" && count(attempts)],
    ["Held back until", instant(heldBackUntil)],
    ["Group", text(group)],
    ["Since", instant(since)],
    ["Host", text(host)],
    ["Process id", isKnown(pid) && pid],
    ["Consumer", text(consumer)],
    ["Died", instant(diedAt)],
    ["Reason", text(reason, 2_000)],
  ].filter(([, value]) => value !== false);
  if (details.length === 0) return null;
  return html`<dl class="facts">
    ${details.map(
      ([label, value]) =>
        html`<div key=${label}>
          <dt>${label}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

function Headers({ headers }) {
  const entries = Object.entries(headers ?? {});
  if (entries.length === 0) return null;
  return html`<section>
    <h3>Headers</h3>
    <dl class="facts">
      ${entries.map(
        ([label, value]) =>
          html`<div key=${label}>
            <dt><${Text} of=${label} /></dt>
            <dd><${Text} of=${value} length=${2_000} lines /></dd>
          </div>`,
      )}
    </dl>
  </section>`;
}
