// @ts-check
import { useEffect, useState } from "../../vendor/preact-htm.js";
import { read } from "./api.js";

/**
 * Searches all queues for a key or an id, step by step: `{ hits, report, error }`. `report` comes at the end, and says
 * where the search looked.
 */
export function useSearch(q) {
  const [state, setState] = useState({ q, hits: [] });
  useEffect(() => {
    const controller = new AbortController();
    void search(q, controller.signal, setState);
    return () => controller.abort();
  }, [q]);
  return state.q === q ? state : { q, hits: [] };
}

async function search(q, signal, show) {
  let state = { q, hits: [] };
  const change = (some) => {
    state = { ...state, ...some };
    if (!signal.aborted) show(state);
  };
  change({});
  try {
    for (let after = ""; after !== undefined;) {
      const query = new URLSearchParams({ q, limit: "100", ...(after !== "" && { after }) });
      // Each step continues where the one before stopped.
      // oxlint-disable-next-line no-await-in-loop
      const step = await read(`api/search?${query}`, signal);
      change({ hits: [...state.hits, ...step.hits], report: step.report ?? undefined });
      after = step.next ?? undefined;
    }
  } catch (error) {
    change({ error });
  }
}
