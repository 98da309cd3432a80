/** A word for a POSIX shell, in single quotes if it holds any character that a shell might interpret. */
export function shellWord(word: string): string {
  return /^[\w.:@/-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
