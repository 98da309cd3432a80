// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count } from "../data/format.js";
import { useQueue } from "../data/live.js";
import { Menu } from "../parts/menu.js";
import { useShell } from "../parts/shell.js";
import { allQuestion, changesIn, limitsOf, selectionQuestion } from "./changes.js";

/**
 * What can be done with the chosen messages of a list, or with all that its `filter` lets through: the parameters of its
 * path beside the state. `rows`: those that the list shows.
 */
export function ListActions({ name, state, filter, rows, selection, reload }) {
  const { ask } = useShell();
  const queue = useQueue(name);
  const { chosen } = selection;
  if (chosen.length === 0) {
    const isFiltered = limitsOf(filter).length > 0;
    const end = isFiltered ? " that match" : "";
    const isReadable = rows.some(({ isUnreadable }) => !isUnreadable);
    const items = changesIn(state, "all")
      .filter(({ verb }) => isReadable || !NEEDS_READABLE.has(verb))
      .map(({ verb, label, isDestructive }) => ({
        label: `${label}${end}`,
        isDestructive,
        act: () => ask(allQuestion(name, state, verb, filter, reload)),
      }));
    return html`<div class="actions">
      <span class="quiet">Select messages to change them.</span>
      ${
        items.length > 0 &&
        html`<span class="end"
          ><${Menu} key="all" label=${`Change all${end}`} items=${items}
        /></span>`
      }
    </div>`;
  }
  const finish = async () => {
    selection.set([]);
    await reload();
  };
  return html`<div class="actions">
    <span role="status">${count(chosen.length)} selected</span>
    ${changesIn(state, "some", queue).map(
      ({ verb, label, isDestructive }) =>
        html`<button
          key=${verb}
          type="button"
          class=${isDestructive ? "danger" : ""}
          onClick=${() => ask(selectionQuestion(name, state, verb, chosen, finish))}
        >
          ${label}
        </button>`,
    )}
    <button key="clear" type="button" class="link" onClick=${() => selection.set([])}>Clear</button>
  </div>`;
}

/** What cannot be done with messages of a foreign format. */
const NEEDS_READABLE = new Set(["redrive", "requeue"]);
