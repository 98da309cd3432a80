// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { searchText, useList } from "../data/list.js";
import { useQueue } from "../data/live.js";
import { addressOf, replaceAddress } from "../data/route.js";
import { stateAt, stateOf } from "../data/states.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { Order } from "../parts/order.js";
import { PAGE, Pager } from "../parts/pager.js";
import { PAYLOAD, PayloadSwitch } from "../parts/payload.js";
import { useSelection } from "../parts/selection.js";
import { useShell } from "../parts/shell.js";
import { SortChoice } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";
import { TextFilter } from "../parts/text-filter.js";
import { changesIn, limitsOf } from "../sections/changes.js";
import { ListActions } from "../sections/list-actions.js";
import { Reasons } from "../sections/reasons.js";
import { groupedColumns, messageColumns } from "../sections/message-columns.js";

/** The messages of a queue in one state, or those in all states whose keys begin with a prefix, a page at a time. */
export function ListPage({ name, page, params }) {
  const { session } = useShell();
  const queue = useQueue(name);
  const state = stateAt(page);
  const { prefix = "", text, after, reason, group, from, until, sort } = params;
  const filter = { prefix, text, reason, group, from, until };
  const isFiltered = prefix !== "" || text !== undefined;
  const [isShown, setShown] = useState(false);
  const isWanted = state !== undefined || prefix !== "";
  const path = queuePath(name, "messages", {
    ...filter,
    state,
    sort,
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
  const { messages = [], next, looked, groups, sortedAmong } = loaded.data ?? {};
  const known = groupedColumns(messageColumns(name, state), messages, groups);
  const columns = [...known, ...(isShown ? [PAYLOAD] : [])];
  const selection = useSelection(messages, keyOf, ({ key, id }) => visible(key ?? id));
  const sortBy = (by) => {
    const { after: _, at: __, ...rest } = params;
    replaceAddress(addressOf(name, page, { ...rest, sort: by }));
  };
  const sorting = { by: sort, onSort: sortBy };
  const isSelectable = !session.readOnly && changesIn(state, "some", queue).length > 0;
  return html`<div>
    <h2 class="unseen">${captionOf(state, prefix)}</h2>
    ${
      state === "dead" &&
      reason === undefined &&
      after === undefined &&
      !isFiltered &&
      html`<${Reasons}
        name=${name}
        dead=${queue?.dead}
        groupCount=${groups}
        reload=${loaded.reload}
      />`
    }
    <${Chosen} name=${name} page=${page} params=${params} />
    <div class="tools">
      <${TextFilter}
        key=${prefix}
        label="Key begins with"
        button="Filter keys"
        value=${prefix}
        onFilter=${(wanted) => replaceAddress(addressOf(name, page, { prefix: wanted, text, sort }))}
      >
        ${
          state !== undefined &&
          prefix !== "" &&
          html`<a href=${addressOf(name, "messages", { prefix })}>in all states</a>`
        }
      <//>
      ${
        isWanted &&
        session.payloads &&
        html`<${TextFilter}
          key=${`payload ${text}`}
          label="Payload contains"
          button="Filter payloads"
          value=${text}
          onFilter=${(wanted) => replaceAddress(addressOf(name, page, { ...params, after: undefined, text: wanted }))}
        />`
      }
      ${isWanted && html`<${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />`}
      <${SortChoice} columns=${columns} sorting=${sorting} initial="Redis’s order" />
      <${Order}
        order=${isFiltered || state === undefined ? "" : orderOf(state, queue)}
        isCut=${isFiltered || state === undefined || queue?.[number] > sortedAmong}
        sortedAmong=${sortedAmong}
        onReset=${() => sortBy(undefined)}
      />
    </div>
    ${
      isSelectable &&
      messages.length > 0 &&
      html`<${ListActions}
        name=${name}
        state=${state}
        filter=${filter}
        rows=${messages}
        selection=${selection}
        reload=${loaded.reload}
      />`
    }
    ${
      isWanted &&
      html`<${LoadedTable}
        loaded=${loaded}
        caption=${captionOf(state, prefix)}
        columns=${columns}
        rows=${messages}
        keyOf=${keyOf}
        sorting=${sorting}
        selection=${isSelectable ? selection : undefined}
        empty=${emptyText(state, filter, next, looked)}
      />`
    }
    <${Pager}
      address=${(some) => addressOf(name, page, some)}
      params=${params}
      next=${messages.length > 0 ? next : undefined}
      list=${JSON.stringify([name, page, filter, sort])}
    />
  </div>`;
}

/** What the list is limited to, beside what its filters show, and the way back to all of it. */
function Chosen({ name, page, params: { reason, group, from, until } }) {
  const limits = limitsOf({ reason, group, from, until });
  if (limits.length === 0) return null;
  return html`<p class="tools chosen">
    ${limits.map(
      ([label, value]) =>
        html`<span key=${label}
          >${label}: <strong><${Text} of=${value} length=${200} /></strong
        ></span>`,
    )}
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
  const order = stateOf(state).order;
  return queue?.partitions > 0 && state !== "delayed" ? `${order} in each partition` : order;
}

function emptyText(state, filter, next, looked) {
  const { prefix, text } = filter;
  if (next) return searchText(looked);
  if (prefix !== "") {
    return html`No message ${state === undefined ? "" : `that is ${state} `}has a key that begins
      with “<${Text} of=${prefix} />”. Ready messages of a plain queue have no keys.`;
  }
  if (text !== undefined) return "No payload contains that text.";
  if (limitsOf(filter).length > 0) return "No match.";
  return `Nothing is ${state}.`;
}
