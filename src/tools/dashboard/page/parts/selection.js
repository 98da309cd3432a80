// @ts-check
import { useMemo, useState } from "../../vendor/preact-htm.js";

/**
 * The rows of a table that are chosen, by key. `rows` are those that the table shows: what it no longer shows is no
 * longer chosen. `nameOf` names a row for screen readers.
 */
export function useSelection(rows, keyOf, nameOf) {
  const [keys, setKeys] = useState(() => new Set());
  return useMemo(() => {
    const chosen = rows.filter((row) => keys.has(keyOf(row)));
    return {
      nameOf,
      chosen,
      has: (key) => keys.has(key),
      set: (all) => setKeys(new Set(all)),
      toggle: (key) =>
        setKeys((before) => {
          const after = new Set(before);
          if (!after.delete(key)) after.add(key);
          return after;
        }),
    };
  }, [rows, keys]);
}
