// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, isKnown, size, instantText } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { addressOf } from "../data/route.js";
import { stateOf } from "../data/states.js";
import { Payload, PayloadSwitch } from "../parts/payload.js";
import { RawForm } from "../parts/raw-form.js";
import { useShell } from "../parts/shell.js";
import { StateLine } from "../parts/state-line.js";
import { Text } from "../parts/text.js";
import { LifeLine } from "./life-line.js";
import { MessageActions } from "./message-actions.js";

/** How often to load the message (ms). */
const INTERVAL = 1_500;

/** The states in which a message has left Redis, and nothing changes any more. */
const ENDS = ["handled", "dropped"];

const GONE =
  "It was handled, cancelled, dropped or removed, or never offered to this queue; or it is in another database, or under another " +
  "key prefix. Redis remembers only what consumers with keepHandled have handled, so nobody can know which.";

/** One message, by id or key: its state, its life, what can be done with it, and all that is known of it. */
export function MessageView({ name, id, key_: key, level = 2 }) {
  const { session } = useShell();
  const [isShown, setShown] = useState(false);
  const payload = isShown ? "1" : undefined;
  const loaded = useLoaded(queuePath(name, "message", { id, key, payload }), {
    every: INTERVAL,
    final: ({ state }) => ENDS.includes(state),
  });
  const message = loaded.data;
  const Heading = `h${level}`;
  return html`<article class="message card" aria-label="Message">
    <div class="head">
      <${Heading}><${Text} of=${message?.key ?? key ?? id ?? ""} /><//>
      <p>
        in <a href=${addressOf(name)}><${Text} of=${name} length=${60} /></a>
      </p>
      <span class="end">
        ${message && html`<${MessageActions} name=${name} message=${message} reload=${loaded.reload} />`}
      </span>
    </div>
    <${StateLine} loaded=${loaded} />
    ${message && html`<${Place} message=${message} />`}
    ${
      message &&
      message.state !== "gone" &&
      html`<div class="parts">
        <section>
          <h3>Life</h3>
          <${LifeLine} message=${message} />
        </section>
        <div>
          <section>
            <h3>Facts</h3>
            <${Pairs} message=${message} />
          </section>
          <${Headers} headers=${message.headers} />
          ${
            !ENDS.includes(message.state) &&
            html`<section>
              <h3>Payload</h3>
              <p class="quiet">${size(message.size)}</p>
              <${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />
              ${isShown && message.payload && html`<${Payload} payload=${message.payload} />`}
            </section>`
          }
        </div>
      </div>`
    }
  </article>`;
}

function Place({ message: { state, mayBeReady } }) {
  const { slug, label, meaning } = stateOf(state);
  const more = mayBeReady
    ? " Or it is ready: ready messages of a plain queue have no id and no key."
    : "";
  return html`<p class=${`place is-${slug}`} role="status">
    <strong>${label}</strong>
    <span>${state === "gone" ? GONE : meaning}${more}</span>
  </p>`;
}

function Pairs({ message }) {
  const { id, key, attempts, group, partition, consumer, schedule, tick, lane, priority } = message;
  const details = [
    ["Key", isKnown(key) && html`<${RawForm} of=${key} />`],
    ["Id", html`<span class="mono"><${Text} of=${id} /></span>`],
    [
      "Schedule",
      isKnown(schedule) &&
        html`<span><${Text} of=${schedule} />, tick of ${instantText(tick)}</span>`,
    ],
    ["Lane", isKnown(lane) && html`<${Text} of=${lane} />`],
    ["Priority", isKnown(priority) && priority],
    ["Attempts", count(attempts)],
    ["Group", isKnown(group) && html`<${Text} of=${group} />`],
    ["Partition", isKnown(partition) && partition],
    ["Consumer", isKnown(consumer) && html`<span class="mono"><${Text} of=${consumer} /></span>`],
  ].filter(([, value]) => value !== false);
  return html`<dl class="pairs">
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
    <dl class="pairs">
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
