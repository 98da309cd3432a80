// @ts-check
import { useCallback, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { read } from "./api.js";

/**
 * Loads what is at a path: `{ data, error, isLoading, reload }`. Loads again when `version` changes, and every `every`
 * milliseconds while the page is visible. Keeps the old data until new data arrives, unless the path changes. Without a
 * path it loads nothing, and no more once data is `final`. `more`: where to look on, if the data has nothing to show yet.
 *
 * @param {string | undefined} path
 * @param {{
 *   version?: unknown,
 *   every?: number,
 *   final?: (data: any) => boolean,
 *   more?: (data: any) => string | undefined,
 * }} [options]
 */
export function useLoaded(path, { version, every, final, more } = {}) {
  const [state, setState] = useState({ path: undefined });
  const current = useRef();

  const load = useCallback(async () => {
    current.current?.abort();
    if (path === undefined) return;
    const controller = new AbortController();
    current.current = controller;
    try {
      for (let at = path; at !== undefined;) {
        // Each step of a search begins where the one before it has stopped.
        // oxlint-disable-next-line no-await-in-loop
        const data = await read(at, controller.signal);
        if (controller.signal.aborted) return;
        at = more?.(data);
        setState({ path, data });
      }
    } catch (error) {
      if (controller.signal.aborted) return;
      setState((before) => ({ path, data: before.path === path ? before.data : undefined, error }));
    }
  }, [path]);

  useEffect(() => {
    void load();
    return () => current.current?.abort();
  }, [load, version]);

  const isFinal = state.path === path && state.data !== undefined && final?.(state.data) === true;
  useEffect(() => {
    if (every === undefined || path === undefined || isFinal) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void load();
    }, every);
    return () => clearInterval(timer);
  }, [load, every, isFinal]);

  const isCurrent = state.path === path;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: path !== undefined && !isCurrent,
    reload: load,
  };
}
