/**
 * Text that cannot play tricks on a terminal or a reader: control characters, line breaks among them, characters that
 * change the direction of text (U+202E and its like), invisible ones and halves of pairs become `\u{...}` escapes.
 */
export function escapeControl(text: string): string {
  return text.toWellFormed().replaceAll(TRICKS, (character) => {
    const short = SHORT.get(character);
    return short ?? `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
  });
}

// Control and format characters (which the marks of direction are), separators of lines and paragraphs, private use and
// unassigned ones.
const TRICKS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;

const SHORT = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);
