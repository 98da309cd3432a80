// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, many } from "../data/format.js";
import { useList } from "../data/list.js";
import { useLive } from "../data/live.js";
import { addressAt, replaceAddress } from "../data/route.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { PAGE, Pager } from "../parts/pager.js";
import { SortChoice } from "../parts/table.js";
import { BUSY_COLUMNS, groupedColumns } from "../sections/message-columns.js";

/** Who holds which message of which queue, and since when. */
export function BusyPage({ params }) {
  const { queues = [] } = useLive();
  const { after, sort } = params;
  const total = queues.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const query = new URLSearchParams({
    limit: String(PAGE),
    ...(after && { after }),
    ...(sort && { sort }),
  }).toString();
  const loaded = useList(`api/busy?${query}`, [total], after === undefined);
  const { messages = [], next, sortedAmong } = loaded.data ?? {};
  const columns = groupedColumns(BUSY_COLUMNS, messages);
  const sorting = {
    by: sort,
    onSort: (by) => replaceAddress(addressAt("busy", { sort: by })),
  };
  return html`<div>
    <div class="head">
      <h1 tabindex="-1">Busy</h1>
      <p>${many(total, "message")} in flight: which process holds what, and since when.</p>
    </div>
    <${SortChoice} columns=${columns} sorting=${sorting} initial="queue" />
    <${LoadedTable}
      loaded=${loaded}
      caption="Messages in flight"
      columns=${columns}
      rows=${messages}
      keyOf=${({ queue, id, group, partition }) => `${queue} ${id} ${group} ${partition}`}
      sorting=${sorting}
      empty="Nothing is in flight. Redis does not know who has taken the messages of plain queues."
    />
    ${total > sortedAmong && html`<p class="quiet">Sorted among the first ${count(sortedAmong)}.</p>`}
    <${Pager}
      address=${(some) => addressAt("busy", some)}
      params=${params}
      next=${next}
      list=${`busy ${sort}`}
    />
  </div>`;
}
