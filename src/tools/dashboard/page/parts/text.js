// @ts-check
import { html } from "../../vendor/preact-htm.js";

// Names, keys, reasons and payloads are untrusted. They only become text nodes, and characters that are invisible, or
// that change how their neighbours are shown, are replaced by their code points.

/** Controls, bidi and other format characters, lone surrogates, line separators, and blank letters. */
const INVISIBLE =
  /\p{Cc}|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}|\u034f|[\u115f\u1160\u3164\uffa0]|\u17b4|\u17b5|[\u180b-\u180d]/u;

/** The layout characters that a text with several lines may contain. */
const LAYOUT = /[\t\n]/u;

/** How many characters of a name or a key are shown. The title has the rest. */
const MAX_SHOWN = 120;

/** The most characters in a title. */
const MAX_TITLE = 4_000;

/** Splits a text into pieces to show unchanged, `{ text }`, and invisible characters, `{ escape }`. */
export function pieces(text, keepsLayout = false) {
  const found = [];
  let plain = "";
  for (const character of text) {
    if (!INVISIBLE.test(character) || (keepsLayout && LAYOUT.test(character))) {
      plain += character;
      continue;
    }
    if (plain !== "") found.push({ text: plain });
    plain = "";
    found.push({ escape: nameOf(character) });
  }
  if (plain !== "") found.push({ text: plain });
  return found;
}

/** A text as a string with visible characters only, for titles, dialogs and the browser's tab. */
export function visible(text) {
  return pieces(String(text))
    .map((piece) => piece.text ?? `⟨${piece.escape}⟩`)
    .join("");
}

/** A text of at most `length` characters. Never splits a surrogate pair. */
export function shortened(text, length = MAX_SHOWN) {
  // A character has at most two UTF-16 units. Slice first, so that a long text is not split as a whole.
  const characters = Array.from(text.slice(0, 2 * length + 2));
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text;
}

/** Shows an untrusted text in one line or, with `lines`, in several. Cuts it to `length` characters. */
export function Text({ of, length = MAX_SHOWN, lines = false }) {
  const text = String(of);
  const short = shortened(text, length);
  const title = short === text ? undefined : visible(shortened(text, MAX_TITLE));
  return html`<bdi class="text" title=${title}
    >${pieces(short, lines).map((piece) =>
      piece.escape === undefined
        ? piece.text
        : html`<span class="escape" title="invisible character">${piece.escape}</span>`,
    )}</bdi
  >`;
}

function nameOf(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
