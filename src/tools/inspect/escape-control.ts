/**
 * Makes text safe to print on a terminal. Control characters (including line breaks), characters that change the
 * direction of text (such as U+202E) and invisible characters become `\u{...}` escapes. Lone surrogates become U+FFFD.
 */
export function escapeControl(text: string): string {
  return text.toWellFormed().replaceAll(TRICKS, (character) => {
    const short = SHORT.get(character);
    return short ?? `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
  });
}

// Control, format (including direction marks), line separator, paragraph separator, private use and unassigned
// characters.
const TRICKS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;

const SHORT = new Map([
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);
