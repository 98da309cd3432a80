// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { instantText } from "../data/format.js";
import { useList } from "../data/list.js";
import { useQueue } from "../data/live.js";
import { addressOf, replaceAddress } from "../data/route.js";
import { stateAt, stateOf } from "../data/states.js";
import { PAGE, Pager } from "../parts/pager.js";
import { Payload, PayloadSwitch } from "../parts/payload.js";
import { useSelection } from "../parts/selection.js";
import { useShell } from "../parts/shell.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";
import { changesIn } from "../sections/changes.js";
import { ListActions } from "../sections/list-actions.js";
import { Reasons } from "../sections/reasons.js";
import { messageColumns } from "../sections/message-columns.js";

/** In which order each list is. */
const ORDERS = {
  delayed: "by deadline",
  ready: "the longest ready first",
  "in flight": "the longest in flight first",
  retrying: "by next attempt",
  dead: "the oldest first",
};

/** The messages of a queue in one state, or those in all states whose keys begin with a prefix, a page at a time. */
export function ListPage({ name, page, params }) {
  const { session } = useShell();
  const queue = useQueue(name);
  const state = stateAt(page);
  const { prefix = "", after, reason, group, from, until } = params;
  const [isShown, setShown] = useState(false);
  const isWanted = state !== undefined || prefix !== "";
  const path = queuePath(name, "messages", {
    state,
    prefix,
    reason,
    group,
    from,
    until,
    after,
    payload: isShown ? "1" : undefined,
    limit: PAGE,
  });
  const { number } = stateOf(state);
  const loaded = useList(
    isWanted ? path : undefined,
    [queue?.[number], queue?.nextDeadline],
    after === undefined,
  );
  const { messages = [], next } = loaded.data ?? {};
  const columns = [...messageColumns(name, state), ...(isShown ? [PAYLOAD] : [])];
  const selection = useSelection(messages, keyOf, ({ key, id }) => visible(key ?? id));
  const isSelectable = !session.readOnly && changesIn(state).length > 0;
  return html`<div>
    <h2 class="unseen">${captionOf(state, prefix)}</h2>
    ${
      state === "dead" &&
      reason === undefined &&
      after === undefined &&
      prefix === "" &&
      html`<${Reasons} name=${name} dead=${queue?.dead} reload=${loaded.reload} />`
    }
    <${Chosen} name=${name} page=${page} params=${params} />
    <div class="tools">
      <${PrefixFilter} key=${prefix} name=${name} page=${page} prefix=${prefix} state=${state} />
      ${isWanted && html`<${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />`}
      <span class="end">${state !== undefined && prefix === "" && orderOf(state, queue)}</span>
    </div>
    ${
      isSelectable &&
      messages.length > 0 &&
      html`<${ListActions}
        name=${name}
        state=${state}
        selection=${selection}
        reload=${loaded.reload}
      />`
    }
    ${
      isWanted &&
      html`<${StateLine}
        loaded=${loaded}
        isEmpty=${messages.length === 0}
        empty=${emptyText(state, prefix, queue, next)}
      />`
    }
    ${
      messages.length > 0 &&
      html`<${Table}
        caption=${captionOf(state, prefix)}
        hidesCaption
        columns=${columns}
        rows=${messages}
        keyOf=${keyOf}
        selection=${isSelectable ? selection : undefined}
      />`
    }
    <${Pager}
      address=${(some) => addressOf(name, page, some)}
      params=${params}
      next=${next}
      list=${JSON.stringify([name, page, prefix, reason, group, from, until])}
    />
  </div>`;
}

const PAYLOAD = {
  id: "payload",
  label: "Payload",
  className: "words",
  cell: ({ payload }) => html`<${Payload} payload=${payload} />`,
};

/** What the list is limited to, beside the beginning of keys, and the way back to all of it. */
function Chosen({ name, page, params: { reason, group, from, until } }) {
  const limits = [
    reason !== undefined &&
      html`<span
        >Reason: <strong><${Text} of=${reason} length=${200} /></strong
      ></span>`,
    group !== undefined &&
      html`<span
        >Group: <strong><${Text} of=${group} /></strong
      ></span>`,
    from !== undefined &&
      html`<span
        >Due from <strong>${instantText(Number(from))}</strong> to
        <strong>${instantText(Number(until))}</strong></span
      >`,
  ].filter(Boolean);
  if (limits.length === 0) return null;
  return html`<p class="tools chosen">
    ${limits}
    <a key="" href=${addressOf(name, page)}>Show all</a>
  </p>`;
}

/** In each group a message may be in another state. */
function keyOf({ id, state, group, partition }) {
  return `${id} ${state} ${group} ${partition}`;
}

function captionOf(state, prefix) {
  const what = state === undefined ? "Messages in any state" : `${stateOf(state).label} messages`;
  return prefix === "" ? what : `${what} with keys that begin with ${visible(prefix)}`;
}

function orderOf(state, queue) {
  return queue?.partitions > 0 && state !== "delayed"
    ? `${ORDERS[state]} in each partition`
    : ORDERS[state];
}

function emptyText(state, prefix, queue, next) {
  if (next) return "No match so far. The search continues on the next page.";
  if (prefix !== "") {
    return html`No message ${state === undefined ? "" : `that is ${state} `}has a key that begins
      with “<${Text} of=${prefix} />”. Ready messages of a plain queue have no keys.`;
  }
  if (state === "ready" && queue?.kind === "plain" && queue.ready > 0) {
    return "The ready messages of a plain queue are bare payloads, without ids and keys.";
  }
  return `Nothing is ${state}.`;
}

function PrefixFilter({ name, page, prefix, state }) {
  const filter = (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get("prefix");
    replaceAddress(addressOf(name, page, { prefix: wanted }));
  };
  const label = "Key begins with";
  return html`<form role="search" aria-label="Filter by key" class="tools" onSubmit=${filter}>
    <input
      name="prefix"
      type="search"
      aria-label=${label}
      placeholder=${`${label} …`}
      defaultValue=${prefix}
      autocomplete="off"
      spellcheck=${false}
      dir="auto"
    />
    <button type="submit">Filter</button>
    ${
      state !== undefined &&
      prefix !== "" &&
      html`<a href=${addressOf(name, "messages", { prefix })}>in all states</a>`
    }
  </form>`;
}
