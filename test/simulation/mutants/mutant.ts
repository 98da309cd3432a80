/** A change of one file of the source. */
export interface Edit {
  /** The file, in `src`. */
  readonly file: string;
  /** The text that is replaced. The file has it exactly once. */
  readonly find: string;
  readonly replace: string;
}

/** A slip that a programmer might make: the source with one thing changed. It compiles, and most messages still arrive. */
export interface Mutant {
  readonly name: string;
  /** What is broken, and which promise. */
  readonly breaks: string;
  /** The worlds in which it should show, the likeliest first. */
  readonly worlds: readonly string[];
  /** The tests of the room that it is in: files and folders in `test`. */
  readonly tests: readonly string[];
  /** Why the simulator does not find it within a thousand seeds, if it does not. */
  readonly unseen?: string;
  readonly edits: readonly [Edit, ...Edit[]];
}

/** @throws {Error} unless the source has the text of the edit exactly once. */
export function edited(source: string, { file, find, replace }: Edit): string {
  const count = source.split(find).length - 1;
  if (count !== 1) throw new Error(`src/${file} has this ${count} times, not once: ${find}`);
  // Not as a pattern: a replacement may hold a dollar sign.
  return source.replace(find, () => replace);
}
