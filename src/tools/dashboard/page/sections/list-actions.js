// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count } from "../data/format.js";
import { useShell } from "../parts/shell.js";
import { allQuestion, changesIn, limitsOf, selectionQuestion } from "./changes.js";

/**
 * What can be done with the chosen messages of a list, or with all that its `filter` lets through: the parameters of its
 * path beside the state. `rows`: those that the list shows.
 */
export function ListActions({ name, state, filter, rows, selection, reload }) {
  const { ask } = useShell();
  const { chosen } = selection;
  if (chosen.length === 0) {
    const isFiltered = limitsOf(filter).length > 0;
    const end = isFiltered ? " that match" : "";
    // With keys of their own: the focus is not to stay on a button that means all.
    const isReadable = rows.some(({ isUnreadable }) => !isUnreadable);
    return html`<div class="actions">
      <span class="quiet">Select messages to change them, or change all:</span>
      ${changesIn(state, "all")
        .filter(([verb]) => isReadable || !NEEDS_READABLE.has(verb))
        .map(
          ([verb, label]) =>
            html`<button
              key=${`all ${verb}`}
              type="button"
              onClick=${() => ask(allQuestion(name, state, verb, filter, reload))}
            >
              ${label}${end}
            </button>`,
        )}
    </div>`;
  }
  const finish = async () => {
    selection.set([]);
    await reload();
  };
  return html`<div class="actions">
    <span role="status">${count(chosen.length)} selected</span>
    ${changesIn(state).map(
      ([verb, label]) =>
        html`<button
          key=${verb}
          type="button"
          onClick=${() => ask(selectionQuestion(name, state, verb, chosen, finish))}
        >
          ${label}
        </button>`,
    )}
    <button type="button" class="link" onClick=${() => selection.set([])}>Clear</button>
  </div>`;
}

/** What cannot be done with messages of a foreign format. */
const NEEDS_READABLE = new Set(["redrive", "requeue"]);
