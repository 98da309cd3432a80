// @ts-check
import { html, useLayoutEffect, useRef } from "../../vendor/preact-htm.js";

/**
 * A table that scrolls sideways if it is too wide. `columns`: `{ label, isNumber, isAction }`. The first cell of each
 * row is its header. `hidesCaption` leaves the caption to screen readers, for use below a heading with the same
 * words.
 */
export function Table({ caption, columns, hidesCaption = false, children }) {
  const scroller = useRef();
  useLayoutEffect(() => {
    const element = scroller.current;
    // Only a table that scrolls needs to be reachable with the Tab key.
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  });
  return html`<div class="scroller" ref=${scroller} role="region" aria-label=${caption}>
    <table>
      <caption class=${hidesCaption ? "unseen" : ""}>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(
            ({ label, isNumber, isAction }) =>
              html`<th scope="col" key=${label} class=${isNumber ? "number" : ""}>
                ${isAction ? html`<span class="unseen">${label}</span>` : label}
              </th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${children}
      </tbody>
    </table>
  </div>`;
}

/** A number in a table, red if it is a problem. */
export function NumberCell({ isProblem, children }) {
  return html`<td class=${isProblem ? "number problem" : "number"}>${children}</td>`;
}
