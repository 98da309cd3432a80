// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count, isKnown, many } from "../data/format.js";
import { useLive } from "../data/live.js";
import { addressOf } from "../data/route.js";
import { useSearch } from "../data/search.js";
import { Instant } from "../parts/instant.js";
import { State } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";
import { MessageView } from "../sections/message-view.js";

/** How many messages are shown in full. More are a list. */
const IN_FULL = 3;

/** How many queues with a similar name are shown. */
const MOST_QUEUES = 12;

/** A message by key or id, in all queues, partitions and states; and the queues with such a name. */
export function FindPage({ params }) {
  const q = params.q ?? "";
  if (q === "") {
    return html`<div>
      <h1 tabindex="-1">Find</h1>
      <p class="empty">Type a key or an id above. Press <kbd>/</kbd> to get there.</p>
    </div>`;
  }
  return html`<${Found} key=${q} q=${q} />`;
}

function Found({ q }) {
  const { hits, report, error } = useSearch(q);
  const isOver = report !== undefined || error !== undefined;
  return html`<div>
    <div class="head">
      <h1 tabindex="-1"><${Text} of=${q} /></h1>
      <p role="status">${statusOf(hits, report, error)}</p>
    </div>
    <${Queues} q=${q} />
    ${error !== undefined && html`<p class="failure" role="alert">Could not search: ${error.message}.</p>`}
    ${hits.length <= IN_FULL ? html`<${Whole} hits=${hits} />` : html`<${Hits} hits=${hits} />`}
    ${isOver && hits.length === 0 && error === undefined && html`<${Nothing} report=${report} />`}
    ${isOver && html`<${LeftOut} report=${report} />`}
  </div>`;
}

function statusOf(hits, report, error) {
  if (error !== undefined) return "The search failed.";
  if (report === undefined) return "Searching all queues…";
  const where = `in ${many(report.queues, "queue")}`;
  return hits.length === 0 ? `Not found ${where}.` : `${many(hits.length, "message")} ${where}.`;
}

function Queues({ q }) {
  const { queues = [] } = useLive();
  const found = queues.filter(({ name }) => name.toLowerCase().includes(q.toLowerCase()));
  if (found.length === 0) return null;
  return html`<section aria-labelledby="queues">
    <h2 id="queues">Queues</h2>
    <p class="tools">
      ${found
        .slice(0, MOST_QUEUES)
        .map(
          ({ name }) =>
            html`<a key=${name} href=${addressOf(name)}><${Text} of=${name} length=${60} /></a>`,
        )}
      ${found.length > MOST_QUEUES && html`<span key="" class="quiet">and ${count(found.length - MOST_QUEUES)} more</span>`}
    </p>
  </section>`;
}

/** A queue is asked once for each message, however many groups have it. */
function Whole({ hits }) {
  const messages = new Map(hits.map((hit) => [`${hit.queue} ${hit.id}`, hit]));
  return html`<div>
    ${Array.from(
      messages,
      ([key, { queue, id }]) =>
        html`<div class="section" key=${key}>
          <${MessageView} name=${queue} id=${id} />
        </div>`,
    )}
  </div>`;
}

const COLUMNS = [
  {
    id: "message",
    label: "Message",
    cell: ({ queue, id, key }) =>
      html`<a href=${addressOf(queue, "message", { id })}><${Text} of=${key ?? id} /></a>`,
  },
  {
    id: "queue",
    label: "Queue",
    cell: ({ queue }) => html`<a href=${addressOf(queue)}><${Text} of=${queue} length=${60} /></a>`,
  },
  { id: "state", label: "State", cell: ({ state }) => html`<${State} of=${state} />` },
  { id: "id", label: "Id", className: "mono", cell: ({ id }) => html`<${Text} of=${id} />` },
];

function Hits({ hits }) {
  return html`<section aria-label="Messages">
    <${Table}
      caption="Messages"
      hidesCaption
      columns=${COLUMNS}
      rows=${hits}
      keyOf=${({ queue, id, state, group }) => `${queue} ${id} ${state} ${group}`}
    />
  </section>`;
}

/** What it can mean that nothing was found. */
function Nothing({ report: { unsearchable, forgetful } }) {
  return html`<section class="card nothing" aria-labelledby="nothing">
    <h2 id="nothing">No message has this key or id now. That can mean:</h2>
    <ul>
      <li>
        <strong>It was handled.</strong> Redis remembers only what consumers with${" "}
        <code>keepHandled</code> have handled, for its time.
        ${forgetful.length > 0 && html` These queues remember nothing: <${Names} of=${forgetful} />`}
      </li>
      <li><strong>It was cancelled,</strong> or removed as a dead letter.</li>
      <li>
        <strong>It was never offered,</strong> or its offer was refused: its producer has seen an
        error.
      </li>
      <li>
        <strong>It is elsewhere:</strong> in another Redis or database, or under another key prefix.
      </li>
      ${
        unsearchable.length > 0 &&
        html`<li>
          <strong>It is ready in a plain queue.</strong> Ready messages of these are bare payloads,
          without keys and ids: <${Names} of=${unsearchable} page="ready" />
        </li>`
      }
    </ul>
  </section>`;
}

/** The first of some queues, each a link to one of its pages. */
function Names({ of, page }) {
  return html`${of
    .slice(0, MOST_QUEUES)
    .map(
      (name) =>
        html`<a key=${name} href=${addressOf(name, page)}><${Text} of=${name} length=${60} /></a
          >${" "}`,
    )}${of.length > MOST_QUEUES && `and ${count(of.length - MOST_QUEUES)} more`}`;
}

/** Where the search did not look to the end. */
function LeftOut({ report }) {
  const { unread = [], failed = [] } = report ?? {};
  if (unread.length + failed.length === 0) return null;
  return html`<section aria-labelledby="left-out">
    <h2 id="left-out">Not searched to the end</h2>
    <ul>
      ${unread.map(
        ({ queue, partition, place, from }) =>
          html`<li key=${`${queue} ${partition} ${place}`}>
            <a href=${addressOf(queue)}><${Text} of=${queue} length=${60} /></a>: the ${place}
            ${isKnown(partition) && ` of partition ${partition}`} from <${Instant} at=${from} /> on
          </li>`,
      )}
      ${failed.map(({ queue, error }) => html`<li key=${queue}><${Text} of=${queue} length=${60} />: ${visible(error)}</li>`)}
    </ul>
  </section>`;
}
