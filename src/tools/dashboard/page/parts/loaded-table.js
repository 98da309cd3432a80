// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { StateLine } from "./state-line.js";
import { SortedTable, Table } from "./table.js";

/**
 * What was loaded: its `rows` in a table, or why there are none. Takes what a table does (parts/table.js), with `initial` of
 * one that sorts itself.
 */
export function LoadedTable({ loaded, rows, empty, ...table }) {
  const Shown = table.initial === undefined ? Table : SortedTable;
  return html`<div>
    <${StateLine} loaded=${loaded} isEmpty=${rows.length === 0} empty=${empty} />
    ${rows.length > 0 && html`<${Shown} hidesCaption rows=${rows} ...${table} />`}
  </div>`;
}
