// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { count } from "../data/format.js";
import { useShell } from "../parts/shell.js";
import { changesIn, selectionQuestion } from "./changes.js";

/** What can be done with the chosen messages of a list; with `whole(verb)`, a question, also with all of it. */
export function ListActions({ name, state, selection, reload, whole }) {
  const { ask } = useShell();
  const { chosen } = selection;
  if (chosen.length === 0) {
    return html`<div class="actions">
      <span class="quiet">Select messages to change them.</span>
      ${
        whole &&
        changesIn(state).map(
          ([verb, label]) =>
            html`<button key=${verb} type="button" onClick=${() => ask(whole(verb))}>
              ${label} all
            </button>`,
        )
      }
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
