// @ts-check
import { html } from "../../vendor/preact-htm.js";

// Names, keys, reasons and payloads come from anybody. They are only ever text nodes, and a character that
// cannot be seen, or that changes how its neighbours are shown, is shown as its number.

/** Controls, bidi and other format characters, lone surrogates, line separators, and letters without ink. */
const UNSEEN =
  /\p{Cc}|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}|\u034f|[\u115f\u1160\u3164\uffa0]|\u17b4|\u17b5|[\u180b-\u180d]/u;

/** What a text may have in several lines. */
const LAYOUT = /[\t\n]/u;

/** What is shown of a name or a key, in characters; the whole is in the title. */
const SHOWN = 120;

/** Splits a text into pieces that are shown as they are, and characters that are shown by number. */
export function pieces(text, keepsLayout = false) {
  const found = [];
  let plain = "";
  for (const character of text) {
    if (!UNSEEN.test(character) || (keepsLayout && LAYOUT.test(character))) {
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

/** The same in one string, for titles, dialogs and the tab. */
export function visible(text) {
  return pieces(String(text))
    .map((piece) => piece.text ?? `⟨${piece.escape}⟩`)
    .join("");
}

/** A short form, cut in the middle of no character. */
export function shortened(text, length = SHOWN) {
  // A character has at most two units; what is cut off anyway need not be split.
  const characters = Array.from(text.slice(0, 2 * length + 2));
  return characters.length > length ? `${characters.slice(0, length - 1).join("")}…` : text;
}

/** A hostile text in one line or, with `lines`, in several. `length`: how much of it is shown. */
export function Text({ of, length = SHOWN, lines = false }) {
  const text = String(of);
  const short = shortened(text, length);
  const title = short === text ? undefined : visible(shortened(text, 4_000));
  return html`<bdi class="text" title=${title}
    >${pieces(short, lines).map((piece) =>
      piece.escape === undefined
        ? piece.text
        : html`<span class="escape" title="a character that cannot be seen">${piece.escape}</span>`,
    )}</bdi
  >`;
}

function nameOf(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
