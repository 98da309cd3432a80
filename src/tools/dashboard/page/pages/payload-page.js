// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, isKnown, size } from "../data/format.js";
import { searchText, useList } from "../data/list.js";
import { useQueue } from "../data/live.js";
import { addressOf, replaceAddress } from "../data/route.js";
import { stateAt, stateOf } from "../data/states.js";
import { Choice } from "../parts/choice.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { Order } from "../parts/order.js";
import { PAGE, Pager } from "../parts/pager.js";
import { PAYLOAD, PayloadSwitch } from "../parts/payload.js";
import { useSelection } from "../parts/selection.js";
import { useShell } from "../parts/shell.js";
import { SortChoice } from "../parts/table.js";
import { TextFilter } from "../parts/text-filter.js";
import { changesIn } from "../sections/changes.js";
import { ListActions } from "../sections/list-actions.js";
import { ListPage } from "./list-page.js";

/** The ready messages of a queue: those of a plain one are bare payloads. */
export function ReadyPage(props) {
  const queue = useQueue(props.name);
  if (queue === undefined) return html`<p class="quiet">Loading…</p>`;
  return html`<${queue.kind === "plain" ? PayloadPage : ListPage} ...${props} />`;
}

const WORDS = {
  ready: {
    about:
      "Bare payloads, the oldest first: a plain queue's ready messages have no ids and no keys.",
    empty: "Nothing is ready.",
  },
  quarantined: {
    about: "Payloads that no consumer could decode, and whole messages of an unknown layout.",
    empty: "The quarantine is empty.",
  },
};

const KINDS = [
  ["", "All"],
  ["payload", "Payloads"],
  ["message", "Unknown layout"],
];

/** The payloads without ids and keys: those in the quarantine, and the ready ones of a plain queue. */
export function PayloadPage({ name, page, params }) {
  const { session } = useShell();
  const queue = useQueue(name);
  const state = stateAt(page);
  const { label, number } = stateOf(state);
  const { kind, text, sort, after } = params;
  const [isShown, setShown] = useState(false);
  const path = queuePath(name, "payloads", {
    state,
    kind,
    text,
    sort,
    after,
    payload: isShown ? "1" : undefined,
    limit: PAGE,
  });
  const loaded = useList(path, [queue?.[number]], after === undefined);
  const { payloads = [], next, looked, most, sortedAmong } = loaded.data ?? {};
  const selection = useSelection(payloads, keyOf, ({ position }) => `position ${position}`);
  const isSelectable = !session.readOnly && changesIn(state).length > 0;
  const isFiltered = kind !== undefined || text !== undefined;
  const filter = (some) => replaceAddress(addressOf(name, page, { kind, text, sort, ...some }));
  const sorting = { by: sort, onSort: (by) => filter({ sort: by }) };
  const columns = columnsOf(state, queue, isShown);
  return html`<div>
    <h2 class="unseen">${label} payloads</h2>
    <div class="tools">
      ${
        state === "quarantined" &&
        html`<${Choice}
          label="Kind"
          options=${KINDS}
          value=${kind ?? ""}
          onChange=${(value) => filter({ kind: value })}
        />`
      }
      ${
        session.payloads &&
        html`<${TextFilter}
          key=${text}
          label="Payload contains"
          button="Filter payloads"
          value=${text}
          onFilter=${(value) => filter({ text: value })}
        />`
      }
      <${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />
      <${SortChoice} columns=${columns} sorting=${sorting} initial="the oldest first" />
      <${Order}
        order="the oldest first"
        about=${WORDS[state].about}
        isCut=${isFiltered || queue?.[number] > sortedAmong}
        sortedAmong=${sortedAmong}
        onReset=${() => filter({ sort: undefined })}
      />
    </div>
    ${
      isSelectable &&
      payloads.length > 0 &&
      html`<${ListActions}
        name=${name}
        state=${state}
        filter=${{ kind, text }}
        rows=${payloads}
        selection=${selection}
        reload=${loaded.reload}
      />`
    }
    <${LoadedTable}
      loaded=${loaded}
      caption=${`${label} payloads`}
      columns=${columns}
      sorting=${sorting}
      rows=${payloads}
      keyOf=${keyOf}
      selection=${isSelectable ? selection : undefined}
      empty=${next ? searchText(looked) : isFiltered ? "No match." : WORDS[state].empty}
    />
    ${queue?.[number] > most && html`<p class="quiet">Only the first ${count(most)} of each list are shown.</p>`}
    <${Pager}
      address=${(some) => addressOf(name, page, some)}
      params=${params}
      next=${payloads.length > 0 ? next : undefined}
      list=${JSON.stringify([name, page, kind, text, sort])}
    />
  </div>`;
}

function columnsOf(state, queue, isShown) {
  return [
    {
      id: "position",
      label: "Position",
      cell: ({ position }) => count(position),
      sortBy: ({ position }) => position,
    },
    ...(queue?.partitions > 0
      ? [
          {
            id: "partition",
            label: "Partition",
            isNumber: true,
            cell: ({ partition }) => partition,
            sortBy: ({ partition }) => partition,
            isNone: ({ partition }) => !isKnown(partition),
          },
        ]
      : []),
    ...(state === "quarantined"
      ? [
          {
            id: "kind",
            label: "Kind",
            cell: ({ isUnreadable }) => (isUnreadable ? "message of unknown layout" : "payload"),
          },
        ]
      : []),
    {
      id: "size",
      label: "Size",
      isNumber: true,
      cell: (one) => size(one.size),
      sortBy: (one) => one.size,
    },
    ...(isShown ? [PAYLOAD] : []),
  ];
}

function keyOf({ place }) {
  return place;
}
