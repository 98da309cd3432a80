// @ts-check
import { html, useState } from "../../vendor/preact-htm.js";

// A table of rows, and cards of the same rows on a phone. The explicit roles keep it a table there.

/**
 * A table. The first column's cell is the header of its row.
 *
 * A column is
 *   { id, label, cell(row), isNumber, isAction, className, state, sortBy(row), isNone(row), isProblem(row) }
 * - `cell`: the content
 * - `state`: the slug of the state that it counts
 * - `sortBy`: the value to sort rows by; without it the column cannot be sorted by
 * - `isNone`: whether there is nothing to see in a cell: it is pale, and left out on a phone
 * - `isProblem`: whether the number is a problem: it is red
 *
 * `sorting`: `{ by, onSort(id) }`, where `by` is a column's id, behind "-" if the largest come first.
 * `selection`: see parts/selection.js. `hidesCaption` leaves the caption to screen readers.
 */
export function Table(props) {
  const { caption, hidesCaption, columns, rows, keyOf, sorting, selection, isPlain } = props;
  return html`<div class=${isPlain ? "table is-plain" : "table"}>
    <table role="table">
      <caption class=${hidesCaption ? "unseen" : ""}>
        ${caption}
      </caption>
      <thead role="rowgroup">
        <tr role="row">
          ${selection && html`<${AllMark} selection=${selection} rows=${rows} keyOf=${keyOf} />`}
          ${columns.map((column) => html`<${Head} key=${column.id} column=${column} sorting=${sorting} />`)}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${rows.map((row) => {
          const key = keyOf(row);
          return html`<${Row}
            key=${key}
            id=${key}
            row=${row}
            columns=${columns}
            selection=${selection}
          />`;
        })}
      </tbody>
    </table>
  </div>`;
}

/** A table with all rows there are, which sorts itself. `initial`: the order in which the rows come, in words. */
export function SortedTable({ initial, rows, ...props }) {
  const [by, onSort] = useState();
  const sorting = { by, onSort };
  return html`<div>
    <${SortChoice} columns=${props.columns} sorting=${sorting} initial=${initial} />
    <${Table} ...${props} rows=${sorted(rows, props.columns, by)} sorting=${sorting} />
  </div>`;
}

/** Rows in the order of a column; see `sorting` of {@link Table}. Rows that are equal in it keep their order. */
export function sorted(rows, columns, by = "") {
  const isDown = by.startsWith("-");
  const { sortBy } = columns.find(({ id }) => id === by.replace(/^-/, "")) ?? {};
  if (sortBy === undefined) return rows;
  const sign = isDown ? -1 : 1;
  return rows.toSorted((a, b) => sign * compared(sortBy(a), sortBy(b)));
}

function compared(a, b) {
  return a === b ? 0 : a < b ? -1 : 1;
}

/** What to sort by when a column's head is pressed: numbers begin with the largest. */
export function nextSorting(by, { id, isNumber }) {
  const [first, second] = isNumber ? [`-${id}`, id] : [id, `-${id}`];
  return by === first ? second : first;
}

/** Sorts a table whose head a phone does not show. */
export function SortChoice({ columns, sorting, initial }) {
  const options = columns.filter(({ sortBy }) => sortBy !== undefined);
  return html`<label class="sorting quiet"
    >Sort by${" "}<select
      value=${sorting.by ?? ""}
      onChange=${({ target }) => sorting.onSort(target.value || undefined)}
    >
      <option value="">${initial}</option>
      ${options.map((column) => {
        const by = nextSorting(undefined, column);
        return html`<option key=${by} value=${by}>${column.label}</option>`;
      })}
    </select></label
  >`;
}

function Head({ column, sorting }) {
  const { id, label, isNumber, isAction, className = "", state, sortBy } = column;
  const by = sorting?.by?.replace(/^-/, "");
  const isSorted = by === id;
  const order = isSorted ? (sorting.by.startsWith("-") ? "descending" : "ascending") : undefined;
  const name =
    state === undefined ? label : html`<span class=${`state is-${state}`}>${label}</span>`;
  const content =
    sorting !== undefined && sortBy !== undefined
      ? html`<button type="button" onClick=${() => sorting.onSort(nextSorting(sorting.by, column))}>
          ${name}${isSorted && html`<span class="arrow" aria-hidden="true">${order === "ascending" ? "▲" : "▼"}</span>`}
        </button>`
      : isAction
        ? html`<span class="unseen">${label}</span>`
        : name;
  return html`<th
    scope="col"
    role="columnheader"
    class=${`${isNumber ? "number " : ""}${className}`}
    aria-sort=${order}
  >
    ${content}
  </th>`;
}

function Row({ id, row, columns, selection }) {
  const [first, ...rest] = columns;
  const isChosen = selection?.has(id) ?? false;
  return html`<tr role="row" class=${isChosen ? "is-chosen" : ""}>
    ${
      selection &&
      html`<td role="cell" class="mark">
        <input
          type="checkbox"
          aria-label=${`Select ${selection.nameOf(row)}`}
          checked=${isChosen}
          onChange=${() => selection.toggle(id)}
        />
      </td>`
    }
    <th scope="row" role="rowheader" class=${first.className}>${first.cell(row)}</th>
    ${rest.map((column) => html`<${Cell} key=${column.id} column=${column} row=${row} />`)}
  </tr>`;
}

function Cell({ column, row }) {
  const { label, cell, isNumber, isAction, className, isNone, isProblem } = column;
  const classes = [
    isNumber && "number",
    isAction && "buttons",
    className,
    isNone?.(row) && "none",
    isProblem?.(row) && "problem",
  ].filter(Boolean);
  return html`<td role="cell" class=${classes.join(" ")} data-label=${isAction ? undefined : label}>
    ${cell(row)}
  </td>`;
}

function AllMark({ selection, rows, keyOf }) {
  const keys = rows.map(keyOf);
  const isAll = keys.length > 0 && keys.every((key) => selection.has(key));
  return html`<th scope="col" role="columnheader" class="mark">
    <input
      type="checkbox"
      aria-label="Select all on this page"
      checked=${isAll}
      onChange=${() => selection.set(isAll ? [] : keys)}
    />
  </th>`;
}
