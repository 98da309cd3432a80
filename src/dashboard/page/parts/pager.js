// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { addressOf } from "../data/route.js";

/** How many rows a page has. */
export const PAGE = 50;

// The cursors of the pages before, by list: a server's cursor leads only forward.
const trails = new Map();

/**
 * Links to the pages of a list, whose cursor is the parameter `after` and whose number is `at`. `list` names the list, its
 * search included.
 */
export function Pager({ name, page, params, next, list }) {
  const { after, at, ...rest } = params;
  const number = Number(at ?? 1);
  const trail = trails.get(list) ?? [];
  trail[number] = after ?? "";
  trails.set(list, trail);
  const to = (cursor, place) =>
    addressOf(name, page, { ...rest, after: cursor, at: place === 1 ? undefined : String(place) });
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
