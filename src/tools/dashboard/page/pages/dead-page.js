// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";
import { queuePath } from "../data/api.js";
import { count, size } from "../data/format.js";
import { useList } from "../data/list.js";
import { useQueue } from "../data/live.js";
import { addressOf } from "../data/route.js";
import { Instant } from "../parts/instant.js";
import { PAGE, Pager } from "../parts/pager.js";
import { Payload, PayloadSwitch } from "../parts/payload.js";
import { useShell } from "../parts/shell.js";
import { StateLine } from "../parts/state-line.js";
import { Table } from "../parts/table.js";
import { Text, visible } from "../parts/text.js";
import { EarlierFailures } from "../sections/failures.js";
import { allLettersQuestions, letterQuestions } from "../sections/letter-questions.js";
import { UnreadableNote } from "../sections/unreadable-note.js";

const COLUMNS = [
  { label: "Message" },
  { label: "Reason" },
  { label: "Attempts", isNumber: true },
  { label: "Group" },
  { label: "Died" },
  { label: "Size", isNumber: true },
  { label: "Id" },
];

/** The dead letters of a queue, a page at a time. */
export function DeadPage({ name, params }) {
  const { session } = useShell();
  const queue = useQueue(name);
  const [isShown, setShown] = useState(false);
  const { after } = params;
  const payload = isShown ? "1" : undefined;
  const path = queuePath(name, "dead", { after, payload, limit: PAGE });
  const loaded = useList(path, [queue?.dead], after === undefined);
  const { letters = [], next } = loaded.data ?? {};
  const columns = [
    ...COLUMNS,
    ...(isShown ? [{ label: "Payload" }] : []),
    ...(session.readOnly ? [] : [{ label: "Actions", isAction: true }]),
  ];
  const order = queue?.partitions > 0 ? "oldest first in each partition" : "oldest first";
  const isWholeList = after === undefined && !next;
  return html`<div>
    <h2>Dead letters</h2>
    <p class="quiet">
      Messages that were rejected or failed too often. They stay here until someone redrives or
      removes them.
    </p>
    <${PayloadSwitch} session=${session} isShown=${isShown} onChange=${setShown} />
    ${
      !session.readOnly &&
      letters.length > 0 &&
      html`<${AllLettersActions}
        name=${name}
        total=${Math.max(queue?.dead ?? 0, letters.length)}
        mayRedrive=${!isWholeList || letters.some((letter) => !letter.isUnreadable)}
        reload=${loaded.reload}
      />`
    }
    <${StateLine} loaded=${loaded} isEmpty=${letters.length === 0} empty="No dead letters." />
    ${
      letters.length > 0 &&
      html`<${Table} caption=${`Dead letters, ${order}`} columns=${columns}>
        ${letters.map(
          (letter) =>
            html`<${LetterRow}
              key=${`${letter.id} ${letter.group}`}
              name=${name}
              letter=${letter}
              isShown=${isShown}
              reload=${loaded.reload}
            />`,
        )}
      <//>`
    }
    <${Pager} name=${name} page="dead" params=${params} next=${next} list=${`${name}\ndead`} />
  </div>`;
}

function AllLettersActions({ name, total, mayRedrive, reload }) {
  const { ask } = useShell();
  const { redrive, remove } = allLettersQuestions(name, total, reload);
  return html`<div class="actions">
    ${mayRedrive && html`<button type="button" onClick=${() => ask(redrive)}>Redrive all</button>`}
    <button type="button" onClick=${() => ask(remove)}>Remove all</button>
  </div>`;
}

function LetterRow({ name, letter, isShown, reload }) {
  const { session } = useShell();
  return html`<tr>
    <th scope="row">
      <a href=${addressOf(name, "message", { id: letter.id })}
        ><${Text} of=${letter.key ?? letter.id}
      /></a>
    </th>
    <td class="words">
      <${Text} of=${letter.reason} length=${300} />
      ${letter.isUnreadable && html`<${UnreadableNote} />`}
      <${EarlierFailures} letter=${letter} />
    </td>
    <td class="number">${count(letter.attempts)}</td>
    <td><${Text} of=${letter.group} /></td>
    <td><${Instant} at=${letter.diedAt} /></td>
    <td class="number">${size(letter.size)}</td>
    <td class="id"><${Text} of=${letter.id} /></td>
    ${isShown && html`<td><${Payload} payload=${letter.payload} /></td>`}
    ${
      !session.readOnly &&
      html`<td class="buttons">
        <${LetterButtons} name=${name} letter=${letter} reload=${reload} />
      </td>`
    }
  </tr>`;
}

function LetterButtons({ name, letter, reload }) {
  const { ask } = useShell();
  const { redrive, remove } = letterQuestions(name, letter.id, reload);
  const label = visible(letter.key ?? letter.id);
  return html`<div>
    ${
      !letter.isUnreadable &&
      html`<button type="button" aria-label=${`Redrive ${label}`} onClick=${() => ask(redrive)}>
        Redrive
      </button>`
    }
    <button type="button" aria-label=${`Remove ${label}`} onClick=${() => ask(remove)}>
      Remove
    </button>
  </div>`;
}
