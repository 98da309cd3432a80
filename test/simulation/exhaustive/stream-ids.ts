/**
 * Replaces the ids that Redis made for entries of streams by their ranks. Redis makes them by its clock, so they differ
 * from run to run; only their order matters.
 */
export function withoutStreamIds(text: string): string {
  const found = [...new Set(text.match(STREAM_ID))];
  if (found.length === 0) return text;
  const inOrder = found.toSorted((x, y) => compareIds(x, y));
  const ranks = new Map(inOrder.map((id, rank) => [id, `#${rank}`]));
  return text.replaceAll(STREAM_ID, (id) => ranks.get(id) ?? id);
}

const STREAM_ID = /\b\d{13}-\d{1,4}\b/g;

/** Negative, 0 or positive, as an entry's id is below, equal to or above another. */
export function compareIds(x: string, y: string): number {
  const [xMs, xSeq, yMs, ySeq] = [...x.split("-"), ...y.split("-")].map(Number);
  return (xMs ?? 0) - (yMs ?? 0) || (xSeq ?? 0) - (ySeq ?? 0);
}
