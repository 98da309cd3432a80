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

/** An untrusted JSON text, coloured. Each piece is text, as everywhere. */
export function Json({ of }) {
  return html`<span
    >${wordsOf(of).map(
      ({ text, kind }, i) =>
        html`<span key=${i} class=${kind && `json-${kind}`}
          ><${Text} of=${text} length=${text.length} lines
        /></span>`,
    )}</span
  >`;
}
