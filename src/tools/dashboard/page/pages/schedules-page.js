// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { change, queuePath } from "../data/api.js";
import { UNKNOWN, count, duration, isKnown, many } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Instant } from "../parts/instant.js";
import { LoadedTable } from "../parts/loaded-table.js";
import { Menu } from "../parts/menu.js";
import { PAYLOAD, Payload, PayloadSwitch } from "../parts/payload.js";
import { useShell } from "../parts/shell.js";
import { Text, visible } from "../parts/text.js";

/** How often to load the schedules (ms). */
const INTERVAL = 5_000;

/** What a state means, and its colour. */
const STATES = {
  active: undefined,
  paused: { label: "paused", colour: "warning" },
  over: { label: "over", colour: "about" },
  unplanned: { label: "nobody plans it", colour: "problem" },
};

const COLUMNS = [
  {
    id: "name",
    label: "Schedule",
    cell: NameCell,
    sortBy: ({ name }) => name.toLowerCase(),
  },
  { id: "when", label: "When", cell: (row) => html`<span>${whenOf(row)}</span>` },
  {
    id: "next",
    label: "Next",
    cell: ({ next, timeZone, cron }) =>
      html`<${Next} next=${next} timeZone=${isKnown(cron) ? timeZone : undefined} />`,
    sortBy: ({ next }) => next[0] ?? Infinity,
    isNone: ({ next }) => next.length === 0,
  },
  {
    id: "lastAt",
    label: "Last",
    cell: ({ lastAt }) => html`<${Instant} at=${lastAt} />`,
    sortBy: ({ lastAt }) => -(lastAt ?? 0),
    isNone: ({ lastAt }) => !isKnown(lastAt),
  },
  {
    id: "count",
    label: "Placed",
    isNumber: true,
    cell: (row) => count(row.count),
    sortBy: (row) => row.count,
  },
  {
    id: "missed",
    label: "Missed",
    isNumber: true,
    cell: (row) => count(row.missed),
    sortBy: (row) => row.missed,
    isNone: (row) => row.missed === 0,
  },
];

/** What the next run of a schedule will carry: if its message is placed, it says so, whoever made the payload. */
const NEXT_PAYLOAD = {
  ...PAYLOAD,
  label: "Payload of the next run",
  cell: ({ payload }) =>
    payload === undefined ? "no run is placed" : html`<${Payload} payload=${payload} />`,
};

/** The schedules of a queue: when each comes next, here and in its own zone, and what can be done with it. */
export function SchedulesPage({ name }) {
  const { session } = useShell();
  const [isShown, setShown] = useState(false);
  const path = queuePath(name, "schedules", { payload: isShown ? "1" : undefined });
  const loaded = useLoaded(path, { every: INTERVAL });
  const { schedules = [], isMore = false } = loaded.data ?? {};
  const actions = {
    id: "actions",
    label: "Actions",
    isAction: true,
    cell: (row) => html`<${Actions} queue=${name} schedule=${row} reload=${loaded.reload} />`,
  };
  return html`<div>
    <h2 class="unseen">Schedules</h2>
    ${
      schedules.length > 0 &&
      html`<div class="tools">
        <${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />
      </div>`
    }
    <${LoadedTable}
      loaded=${loaded}
      caption="Schedules"
      columns=${[...COLUMNS, ...(isShown ? [NEXT_PAYLOAD] : []), ...(session.readOnly ? [] : [actions])]}
      rows=${schedules}
      keyOf=${(row) => row.name}
      initial="urgency"
      empty="No schedules: processes declare them with queue.schedules."
    />
    ${
      schedules.length > 0 &&
      html`<p class="quiet">
        ${isMore ? `The first ${many(schedules.length, "schedule")}. ` : ""}Ticks are placed as
        messages shortly before they are due; later ones are not in the lists yet.
      </p>`
    }
  </div>`;
}

function NameCell({ name, state, needs }) {
  const shown = STATES[state];
  return html`<span>
    <${Text} of=${name} length=${60} />
    ${shown && html`<span class=${`badge ${shown.colour}`}>${shown.label}</span>`}
    ${
      needs === "code" &&
      html`<span
        class="badge about"
        title="Its payload or its calendar is code: only processes that declare it can plan it"
        >code</span
      >`
    }
  </span>`;
}

function whenOf({ every, phase, cron, timeZone, set, revision, ...others }) {
  const { overlap, misfire, lane, priority } = others;
  const rule = isKnown(every)
    ? `every ${duration(every)}${phase > 0 ? ` at ${duration(phase)}` : ""}`
    : isKnown(cron)
      ? `${visible(cron)} ${visible(timeZone)}`
      : "a calendar of its own";
  return html`<span>
    ${rule}<br /><small class="quiet">misfire ${misfire}, overlap ${overlap}</small>
    ${
      isKnown(lane ?? priority) &&
      html`<br /><small class="quiet"
          >${isKnown(lane) && html`lane${" "}<${Text} of=${lane} length=${60} />`}${
            isKnown(priority) && `${isKnown(lane) ? ", " : ""}priority ${priority}`
          }</small
        >`
    }
    ${
      isKnown(set) &&
      html`<br /><small class="quiet"
          >set${" "}<${Text}
            of=${set}
            length=${60}
          />${isKnown(revision) && `, revision ${revision}`}</small
        >`
    }
  </span>`;
}

/** The next tick; the others, and what the clocks of the schedule's zone show, on demand. */
function Next({ next, timeZone }) {
  if (next.length === 0) return UNKNOWN;
  const zoned = (at) => (timeZone === undefined ? "" : textIn(at, timeZone));
  return html`<span>
    <${Instant} at=${next[0]} />
    ${timeZone !== undefined && html`<br /><small class="quiet">${zoned(next[0])}</small>`}
    ${
      next.length > 1 &&
      html`<details>
        <summary class="quiet">${many(next.length - 1, "more")}</summary>
        <ul>
          ${next
            .slice(1)
            .map(
              (at) =>
                html`<li key=${at}>
                  <${Instant} at=${at} />${" "}<small class="quiet">${zoned(at)}</small>
                </li>`,
            )}
        </ul>
      </details>`
    }
  </span>`;
}

/** What clocks show in a time zone; only the zone if this browser does not know it. */
function textIn(at, timeZone) {
  try {
    return `${new Date(at).toLocaleString("sv-SE", { timeZone })} ${timeZone}`;
  } catch {
    return timeZone;
  }
}

function Actions({ queue, schedule: { name, isPaused, needs }, reload }) {
  const { ask } = useShell();
  const question = (verb, { title, text, done, isDestructive = false }) => ({
    title: `${title} ${visible(name)}?`,
    text,
    verb: title,
    isDestructive,
    act: async () => {
      const { done: isDone } = await change(queuePath(queue, "schedules/change"), { name, verb });
      await reload();
      return isDone
        ? `${visible(name)} ${done}.`
        : `There is no schedule ${visible(name)} any more.`;
    },
  });
  const questions = {
    run: {
      title: "Run",
      text: "Offers a run now, beside the ticks.",
      done: "is offered now",
    },
    resume: {
      title: "Resume",
      text: "Ticks count from now on. What would have come during the pause does not.",
      done: "was resumed",
    },
    pause: {
      title: "Pause",
      text: "Withdraws the messages that are placed, until someone resumes it. What is ready is delivered.",
      done: "was paused",
    },
    remove: {
      title: "Remove",
      text: "Removes the schedule and the messages that are placed. A process that declares it adds it again.",
      done: "was removed",
      isDestructive: true,
    },
  };
  const verbs = [...(needs === "nothing" ? ["run"] : []), isPaused ? "resume" : "pause", "remove"];
  const items = verbs.map((verb) => ({
    label: questions[verb].title,
    isDestructive: questions[verb].isDestructive === true,
    act: () => ask(question(verb, questions[verb])),
  }));
  return html`<${Menu} label="Change" about=${visible(name)} items=${items} />`;
}
