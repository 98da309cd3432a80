// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { many } from "../data/format.js";
import { useList } from "../data/list.js";
import { useLive } from "../data/live.js";
import { addressAt } from "../data/route.js";
import { PAGE, Pager } from "../parts/pager.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { BUSY_COLUMNS } from "../sections/message-columns.js";

/** Who holds which message of which queue, and since when. */
export function BusyPage({ params }) {
  const { queues = [] } = useLive();
  const { after } = params;
  const total = queues.reduce((sum, { inFlight }) => sum + inFlight, 0);
  const query = new URLSearchParams({ limit: String(PAGE), ...(after && { after }) }).toString();
  const loaded = useList(`api/busy?${query}`, [total], after === undefined);
  const { messages = [], next } = loaded.data ?? {};
  return html`<div>
    <div class="head">
      <h1 tabindex="-1">Busy</h1>
      <p>${many(total, "message")} in flight: which process holds what, and since when.</p>
    </div>
    <${StateLine}
      loaded=${loaded}
      isEmpty=${messages.length === 0}
      empty="Nothing is in flight. Redis does not know who has taken the messages of plain queues."
    />
    ${
      messages.length > 0 &&
      html`<${Table}
        caption="Messages in flight"
        hidesCaption
        columns=${BUSY_COLUMNS}
        rows=${messages}
        keyOf=${({ queue, id, group, partition }) => `${queue} ${id} ${group} ${partition}`}
      />`
    }
    <${Pager}
      address=${(some) => addressAt("busy", some)}
      params=${params}
      next=${next}
      list="busy"
    />
  </div>`;
}
