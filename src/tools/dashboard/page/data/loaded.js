// @ts-check
import { useCallback, useEffect, useRef, useState } from "../../vendor/preact-htm.js";
import { read } from "./api.js";

/**
 * Loads what is at a path: `{ data, error, isLoading, reload }`. Loads again when `version` changes, and every `every`
 * milliseconds while the page is visible. Keeps the old data until new data arrives, unless the path changes. Without a
 * path it loads nothing, and no more once data is `final`.
 *
 * @param {string | undefined} path
 * @param {{ version?: unknown, every?: number, final?: (data: any) => boolean }} [options]
 */
export function useLoaded(path, { version, every, final } = {}) {
  const [state, setState] = useState({ path: undefined });
  const current = useRef();

  const load = useCallback(async () => {
    current.current?.abort();
    if (path === undefined) return;
    const controller = new AbortController();
    current.current = controller;
    try {
      const data = await read(path, controller.signal);
      if (!controller.signal.aborted) setState({ path, data });
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
