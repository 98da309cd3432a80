// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { UNKNOWN, count, isKnown } from "../data/format.js";
import { useList } from "../data/list.js";
import { useQueue } from "../data/live.js";
import { addressOf } from "../data/route.js";
import { Instant } from "../parts/instant.js";
import { PAGE, Pager } from "../parts/pager.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { Text } from "../parts/text.js";

const COLUMNS = [
  { label: "Message" },
  { label: "Since" },
  { label: "Attempt", isNumber: true },
  { label: "Group" },
  { label: "Host" },
  { label: "Process id", isNumber: true },
  { label: "Consumer" },
];

/** The messages that consumers have in flight, a page at a time: since when, and in which process. */
export function InFlight({ name, params }) {
  const queue = useQueue(name);
  const { after } = params;
  const path = queuePath(name, "in-flight", { after, limit: PAGE });
  const loaded = useList(path, [queue?.inFlight], after === undefined);
  const { messages = [], next } = loaded.data ?? {};
  return html`<section aria-labelledby="in-flight">
    <h3 id="in-flight">In flight</h3>
    <${StateLine} loaded=${loaded} isEmpty=${messages.length === 0} empty="Nothing in flight." />
    ${
      messages.length > 0 &&
      html`<${Table} caption="Messages in flight, oldest first" hidesCaption columns=${COLUMNS}>
        ${messages.map((one) => html`<${MessageRow} key=${`${one.id} ${one.group}`} name=${name} message=${one} />`)}
      <//>`
    }
    <${Pager}
      name=${name}
      page="consumers"
      params=${params}
      next=${next}
      list=${`${name}\nin flight`}
    />
  </section>`;
}

function MessageRow({ name, message }) {
  const { id, key, since, attempts, group, host, pid, consumer } = message;
  return html`<tr>
    <th scope="row">
      <a href=${addressOf(name, "message", { id })}><${Text} of=${key ?? id} /></a>
    </th>
    <td><${Instant} at=${since} /></td>
    <td class="number">${count(attempts)}</td>
    <td><${Text} of=${group} /></td>
    <td>${isKnown(host) ? html`<${Text} of=${host} />` : UNKNOWN}</td>
    <td class="number">${isKnown(pid) ? pid : UNKNOWN}</td>
    <td class="id"><${Text} of=${consumer} /></td>
  </tr>`;
}
