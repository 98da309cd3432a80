// @ts-check

// The problems of queues. The server decides what is one, how bad it is, and in which words. Views show a number in red
// exactly if a problem names its column.

/** The problems of a row, as `{ name, level, title, brief, text, column, page }`, the worst first. */
export function problemsOf(row) {
  return row.problems;
}

/** The problems of rows: one for each kind, `{ name, level, title, page, queues: [{ row, brief }] }`, the worst first. */
export function problemsAmong(rows) {
  const kinds = new Map();
  for (const row of rows) {
    for (const { name, level, title, page, brief } of problemsOf(row)) {
      if (!kinds.has(name)) kinds.set(name, { name, level, title, page, queues: [] });
      kinds.get(name).queues.push({ row, brief });
    }
  }
  return [...kinds.values()].toSorted((a, b) => rankOf([a]) - rankOf([b]));
}

/** The numbers of a row that are problems. */
export function problemColumnsOf(row) {
  return new Set(problemsOf(row).map(({ column }) => column));
}

/** Sorts rows: those with errors first, then those with warnings, then by name. */
export function byUrgency(rows) {
  const ranked = rows.map((row) => ({ row, rank: rankOf(problemsOf(row)) }));
  ranked.sort((a, b) => a.rank - b.rank || (a.row.name < b.row.name ? -1 : 1));
  return ranked.map(({ row }) => row);
}

function rankOf(problems) {
  const levels = problems.map(({ level }) => level);
  return levels.includes("error") ? 0 : levels.length > 0 ? 1 : 2;
}
