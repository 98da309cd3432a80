// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** The most rows on a page. */
export const PAGE = 50;

// The cursors of the pages visited so far, by list. A server's cursor only points forward.
const trails = new Map();

/**
 * Links to the first, the previous and the next page of a list. The parameter `after` is the page's cursor, and `at`
 * its number. `address` makes the address of the list with its parameters; `list` identifies the list, including its
 * search.
 */
export function Pager({ address, params, next, list }) {
  const { after, at, ...rest } = params;
  const number = Number(at ?? 1);
  const trail = trails.get(list) ?? [];
  trail[number] = after ?? "";
  trails.set(list, trail);
  const to = (cursor, page) =>
    address({ ...rest, after: cursor, at: page === 1 ? undefined : String(page) });
  if (number === 1 && !next) return null;
  return html`<nav class="pager" aria-label="Pages of this list">
    ${number > 1 && html`<a href=${to("", 1)}>First page</a>`}
    ${
      number > 2 &&
      trail[number - 1] !== undefined &&
      html`<a href=${to(trail[number - 1], number - 1)} rel="prev">Previous page</a>`
    }
    <span aria-live="polite">Page ${number}</span>
    ${next && html`<a href=${to(next, number + 1)} rel="next">Next page</a>`}
  </nav>`;
}
