import { BROUGHT, OWNERS, squeezed, type Brought } from "./brought-names.ts";

/**
 * Returns the end of an error about an option that is not known here, such as `; did you mean key?`. It is empty if
 * nobody can know what was meant.
 *
 * @param known the names of the options that are legal here.
 */
export function wayOutOf(given: string, known: readonly string[]): string {
  const here = optionFor(given, known);
  if (here !== undefined) {
    const { write } = meaningsOf(given).find(({ option }) => option === here) ?? {};
    return `; did you mean ${write?.(given) ?? here}?`;
  }
  const ours = Object.keys(OWNERS).find((name) => squeezed(name) === squeezed(given));
  if (ours !== undefined) return `; ${ours} is an option of ${OWNERS[ours]}`;
  const meanings = meaningsOf(given);
  const meant = meanings.find(({ wayOut }) => wayOut !== undefined) ?? meanings[0];
  if (meant?.wayOut !== undefined) return `; ${meant.wayOut}`;
  if (meant?.option !== undefined) {
    const owner = OWNERS[meant.option] ?? "most calls";
    return `; use ${meant.write?.(given) ?? meant.option}, an option of ${owner}`;
  }
  const near = suggest(given, Object.keys(OWNERS));
  return near === undefined ? "" : `; did you mean ${near}, an option of ${OWNERS[near]}?`;
}

/** The known option that an unknown name means, in this library or in another, or is a misspelling of. */
export function optionFor(given: string, known: readonly string[]): string | undefined {
  const meant = meaningsOf(given).find(({ option = "" }) => known.includes(option));
  return meant?.option ?? suggest(given, known);
}

function meaningsOf(given: string): readonly Brought[] {
  return BROUGHT.filter(({ names }) => names.includes(squeezed(given)));
}

/** The known word closest to a misspelt one; undefined if none is close. */
export function suggest(word: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Infinity;
  for (const candidate of known) {
    const distance = distanceOf(word.toLowerCase(), candidate.toLowerCase());
    const isPrefix = word.length >= 2 && candidate.startsWith(word);
    const weight = isPrefix ? Math.min(distance, 1) : distance;
    if (weight < least && weight <= Math.max(1, Math.floor(candidate.length / 3))) {
      [best, least] = [candidate, weight];
    }
  }
  return best;
}

/** How many letters must be inserted, deleted, replaced, or swapped with their neighbour to get from `a` to `b`. */
function distanceOf(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) cost = Math.min(cost, at(before, j - 2) + 1);
      row.push(cost);
    }
    [before, last] = [last, row];
  }
  return at(last, b.length);
}

function at(row: readonly number[], i: number): number {
  return row[i] ?? Infinity;
}
