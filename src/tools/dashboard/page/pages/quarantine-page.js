// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { count, many, size } from "../data/format.js";
import { useQueue } from "../data/live.js";
import { useLoaded } from "../data/loaded.js";
import { PAGE } from "../parts/pager.js";
import { Payload, PayloadSwitch } from "../parts/payload.js";
import { useShell } from "../parts/shell.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { id: "position", label: "Position", cell: ({ position }) => position },
  { id: "size", label: "Size", isNumber: true, cell: (item) => size(item.size) },
];

const PAYLOAD = {
  id: "payload",
  label: "Payload",
  className: "words",
  cell: ({ payload }) => html`<${Payload} payload=${payload} />`,
};

/** How often to load the list (ms) while its number stays the same. */
const INTERVAL = 5_000;

/** The entries of a queue that no consumer could read. */
export function QuarantinePage({ name }) {
  const { session, ask } = useShell();
  const queue = useQueue(name);
  const [isShown, setShown] = useState(false);
  const payload = isShown ? "1" : undefined;
  const path = queuePath(name, "quarantine", { payload, limit: PAGE });
  const loaded = useLoaded(path, { version: queue?.quarantined, every: INTERVAL });
  const { size: total = 0, items = [] } = loaded.data ?? {};
  const act = (verb, done) => async () => {
    const { count: number } = await change(queuePath(name, `quarantine/${verb}`));
    await loaded.reload();
    return `${many(number, "message")} ${number === 1 ? "was" : "were"} ${done}.`;
  };
  const requeue = {
    title: `Requeue everything in quarantine (${count(total)})?`,
    text:
      "Payloads become ready again, for example after a codec was fixed. Those still unreadable come back here. " +
      "Whole messages of an unknown layout stay.",
    verb: "Requeue all",
    act: act("requeue", "requeued"),
  };
  const remove = {
    title: `Remove everything from quarantine (${count(total)})?`,
    text: "All payloads and messages in quarantine are deleted. This cannot be undone.",
    verb: "Remove all",
    isDestructive: true,
    act: act("remove", "removed"),
  };
  return html`<div>
    <h2 class="unseen">Quarantine</h2>
    <div class="tools">
      <span class="quiet">
        Payloads that no consumer could decode, and messages of an unknown layout.
      </span>
      <${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />
    </div>
    ${
      !session.readOnly &&
      total > 0 &&
      html`<div class="actions">
        <button type="button" onClick=${() => ask(requeue)}>Requeue all</button>
        <button type="button" onClick=${() => ask(remove)}>Remove all</button>
      </div>`
    }
    <${StateLine} loaded=${loaded} isEmpty=${total === 0} empty="The quarantine is empty." />
    ${
      items.length > 0 &&
      html`<${Table}
        caption=${
          items.length < total
            ? `The first ${count(items.length)} of ${count(total)} in quarantine`
            : `${count(total)} in quarantine`
        }
        columns=${isShown ? [...COLUMNS, PAYLOAD] : COLUMNS}
        rows=${items.map((item, index) => ({ ...item, position: index + 1 }))}
        keyOf=${({ position }) => position}
      />`
    }
  </div>`;
}
