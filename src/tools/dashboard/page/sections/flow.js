// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { count, isKnown, many } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Instant } from "../parts/instant.js";
import { Menu } from "../parts/menu.js";
import { useShell } from "../parts/shell.js";
import { StateLine } from "../parts/state-line.js";
import { SortedTable } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";

/** How often to load the flow (ms). */
const INTERVAL = 5_000;

const COLUMNS = [
  {
    id: "lane",
    label: "Lane",
    sortBy: ({ lane }) => lane,
    cell: ({ lane }) =>
      lane === ""
        ? html`<span class="quiet">without a lane</span>`
        : html`<${Text} of=${lane} length=${60} />`,
  },
  {
    id: "waiting",
    label: "Waiting",
    isNumber: true,
    sortBy: ({ waiting }) => waiting,
    cell: ({ waiting }) => count(waiting),
  },
  {
    id: "running",
    label: "In hand",
    isNumber: true,
    sortBy: ({ running }) => running ?? -1,
    cell: ({ running }) => count(running),
    isNone: ({ running }) => !isKnown(running),
  },
  {
    id: "restsUntil",
    label: "Rests until",
    sortBy: ({ restsUntil }) => restsUntil ?? 0,
    cell: ({ restsUntil }) => html`<${Instant} at=${restsUntil} isExact />`,
    isNone: ({ restsUntil }) => !isKnown(restsUntil),
  },
];

const PINNED = {
  id: "pinned",
  label: "Pinned",
  sortBy: ({ pinned }) => pinned ?? "",
  cell: ({ pinned }) => pinned,
  isNone: ({ pinned }) => !isKnown(pinned),
};

/** How the messages of a queue become ready, and the lanes in which most of them wait; nothing if the queue has no flow. */
export function Flow({ name }) {
  const { session } = useShell();
  const loaded = useLoaded(queuePath(name, "flow"), { every: INTERVAL });
  const { flow, waiting = 0, lanes = [], isMore = false } = loaded.data ?? {};
  if (loaded.error === undefined && !isKnown(flow) && waiting === 0) return null;
  const actions = {
    id: "actions",
    label: "Actions",
    isAction: true,
    cell: (lane) =>
      lane.lane !== "" &&
      html`<${LaneActions} queue=${name} lane=${lane} reload=${loaded.reload} />`,
  };
  const columns = [
    ...COLUMNS,
    ...(lanes.some(({ pinned }) => isKnown(pinned)) ? [PINNED] : []),
    ...(session.readOnly ? [] : [actions]),
  ];
  return html`<section aria-labelledby="flow">
    <div class="head"><h2 id="flow">Flow</h2></div>
    ${loaded.error !== undefined && html`<${StateLine} loaded=${loaded} />`}
    ${
      loaded.data &&
      html`<p>
        ${isKnown(flow) ? flow : "ended"};${" "}
        <span class="quiet">${many(waiting, "message")} waiting for their turn</span>
      </p>`
    }
    ${
      lanes.length > 0 &&
      html`<${SortedTable}
        caption="Lanes in which messages wait or are in hand, and those that are held or pinned"
        hidesCaption
        columns=${columns}
        rows=${lanes}
        keyOf=${({ lane }) => lane}
        initial="most waiting"
      />`
    }
    ${isMore && html`<p class="quiet">These lanes have the most waiting; there are more.</p>`}
  </section>`;
}

/** Pauses a lane, or lets the flow say again what it may. */
function LaneActions({ queue, lane: { lane, pinned }, reload }) {
  const { ask } = useShell();
  const question = (verb, { title, text, done }) => ({
    title: `${title} lane ${visible(lane)}?`,
    text,
    verb: title,
    act: async () => {
      await change(queuePath(queue, "lanes/change"), { name: lane, verb });
      await reload();
      return `Lane ${visible(lane)} ${done}.`;
    },
  });
  const pause = {
    title: "Pause",
    text: "Until someone unpins it, no message of the lane becomes ready, whatever flow a process sets. What is ready is delivered.",
    done: "was paused",
  };
  const unpin = {
    title: "Unpin",
    text: "The flow says again what the lane may.",
    done: "was unpinned",
  };
  const items = [
    ...(pinned === "paused" ? [] : [{ label: "Pause", act: () => ask(question("pause", pause)) }]),
    ...(isKnown(pinned) ? [{ label: "Unpin", act: () => ask(question("unpin", unpin)) }] : []),
  ];
  return html`<${Menu} label="Change" about=${visible(lane)} items=${items} />`;
}
