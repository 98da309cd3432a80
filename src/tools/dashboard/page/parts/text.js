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

/**
 * Invisible characters that belong to honest texts, and are shown as they are:
 * - joiners inside of emoji, such as a family's, and tags of a region's flag
 * - joiners between letters of scripts that are written with them, such as Persian
 */
const HONEST =
  /(?<=[\p{Extended_Pictographic}\p{EMod}\u{fe0f}])\u200d(?=\p{Extended_Pictographic})|(?<=\u{1f3f4})[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]+\u{e007f}|(?<=[\p{scx=Arab}\p{scx=Syrc}\p{scx=Deva}\p{scx=Beng}\p{scx=Gujr}\p{scx=Guru}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}])[\u200c\u200d](?=[\p{scx=Arab}\p{scx=Syrc}\p{scx=Deva}\p{scx=Beng}\p{scx=Gujr}\p{scx=Guru}\p{scx=Orya}\p{scx=Taml}\p{scx=Telu}\p{scx=Knda}\p{scx=Mlym}\p{scx=Sinh}])/gu;

/** Splits a text into pieces to show unchanged, `{ text }`, and invisible characters, `{ escape }`. */
export function pieces(text, keepsLayout = false) {
  const honest = new Set();
  for (const { index, 0: found } of text.matchAll(HONEST)) {
    for (let at = index; at < index + found.length; at++) honest.add(at);
  }
  const isPlain = (character, at) =>
    !INVISIBLE.test(character) || honest.has(at) || (keepsLayout && LAYOUT.test(character));
  const found = [];
  let plain = "";
  let at = 0;
  for (const character of text) {
    if (isPlain(character, at)) plain += character;
    else {
      if (plain !== "") found.push({ text: plain });
      plain = "";
      found.push({ escape: nameOf(character) });
    }
    at += character.length;
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
