// @ts-check
import { html, useLayoutEffect, useRef } from "../../vendor/preact-htm.js";

/**
 * A table that scrolls sideways where it is too wide. `columns`: `{ label, isNumber, isAction }`; the first cell of each row
 * is its header. `hidesCaption`: it is there for screen readers only, where a heading says the same.
 */
export function Table({ caption, columns, hidesCaption = false, children }) {
  const scroller = useRef();
  useLayoutEffect(() => {
    const element = scroller.current;
    // Only what scrolls needs a stop of the tab key.
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

/** A number in a table; red, and said to be trouble, where it is. */
export function NumberCell({ trouble, children }) {
  return html`<td class=${trouble ? "number trouble" : "number"}>${children}</td>`;
}
