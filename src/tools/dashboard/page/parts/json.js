// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { Text } from "./text.js";

/** What JSON consists of, apart from signs and blanks, by kind. The colon behind a string makes it a key. */
const WORD =
  /(?<key>"(?:[^"\\]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\]|\\.)*")|(?<number>-?\b\d[\d.eE+-]*)|\b(?<word>true|false|null)\b/gu;

/**
 * The pieces of a JSON text in their order, `{ text, kind }`: a `key`, a `string`, a `number`, a `word`; what is between them
 * has no kind. The text may be cut off anywhere.
 */
export function wordsOf(text) {
  const found = [];
  let end = 0;
  for (const { 0: word, index, groups } of text.matchAll(WORD)) {
    if (index > end) found.push({ text: text.slice(end, index) });
    found.push({
      text: word,
      kind: Object.keys(groups).find((kind) => groups[kind] !== undefined),
    });
    end = index + word.length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

/** How deep objects and arrays are folded: the payload of a stranger may consist of brackets. */
const DEEPEST = 32;

const ENDS = { "{": "}", "[": "]" };

/**
 * What a JSON text says as an outline: the items of its only value. An item is a row of pieces, as `wordsOf` has them, and of
 * objects and arrays: `{ open, close, items }`. The text may be cut off anywhere, and is not lost whatever it is.
 *
 * @returns {any[]}
 */
export function outlineOf(text) {
  const path = [{ open: "", close: "", items: [[]] }];
  // The brackets that are too deep for an outline.
  let deeper = 0;
  let at = 0;
  const add = (piece) => {
    const { items } = path.at(-1);
    if (items.length === 0) items.push([]);
    items.at(-1).push(piece);
  };
  for (const piece of wordsOf(text)) {
    for (const sign of piece.kind === undefined ? piece.text : []) {
      const { open, items } = path.at(-1);
      // A string without an end: so the text is cut off here.
      if (sign === '"') {
        add({ text: text.slice(at), kind: "string" });
        return path[0].items;
      }
      at += sign.length;
      if (sign in ENDS && path.length > DEEPEST) deeper++;
      else if (sign in ENDS) {
        const inner = { open: sign, close: "", items: [] };
        add(inner);
        path.push(inner);
        continue;
      } else if (deeper > 0 && (sign === "}" || sign === "]")) deeper--;
      else if (path.length > 1 && sign === ENDS[open]) {
        path.pop().close = sign;
        continue;
      } else if (path.length > 1 && sign === "," && deeper === 0) {
        items.push(...(items.length === 0 ? [[], []] : [[]]));
        continue;
      }
      if (sign.trim() !== "") add({ text: sign === ":" ? ": " : sign });
    }
    if (piece.kind === undefined) continue;
    at += piece.text.length;
    add(piece);
  }
  return path[0].items;
}

/**
 * An untrusted JSON text: coloured, indented, and each object and array with a fold. Each piece is text, as everywhere.
 */
export function Json({ of }) {
  return html`<div class="json">
    ${outlineOf(of).map((item, i) => html`<${Item} key=${i} item=${item} end="" />`)}
  </div>`;
}

/** A line, or the lines of an object or an array with what stands before it. */
function Item({ item, end }) {
  const at = item.findIndex(({ items }) => items !== undefined);
  if (at === -1) return html`<div><${Words} of=${item} />${end}</div>`;
  const { open, close, items } = item[at];
  const lead = item.slice(0, at);
  const rest = item.slice(at + 1);
  const tail = rest.length === 0 ? end : "";
  return html`<div>
    ${
      items.length === 0
        ? html`<div><${Words} of=${lead} />${open}${close}${tail}</div>`
        : html`<details open>
            <summary data-more=${`… ${items.length} ${close}`}>
              <${Words} of=${lead} />${open}
            </summary>
            <div class="json-items">
              ${items.map(
                (one, i) =>
                  html`<${Item} key=${i} item=${one} end=${i < items.length - 1 ? "," : ""} />`,
              )}
            </div>
            ${close}${tail}
          </details>`
    }
    ${rest.length > 0 && html`<${Item} item=${rest} end=${end} />`}
  </div>`;
}

function Words({ of }) {
  return html`<span
    >${of.map(
      ({ text, kind }, i) =>
        html`<span key=${i} class=${kind && `json-${kind}`}
          ><${Text} of=${text} length=${text.length} lines
        /></span>`,
    )}</span
  >`;
}
