// @ts-check
import { useRef } from "../../vendor/preact-htm.js";
import { count } from "./format.js";
import { live } from "./live.js";
import { useLoaded } from "./loaded.js";

/**
 * The shortest time between two loads of a first page that is not the last (ms): the server keeps each reading for a
 * while.
 */
const LONG_LIST_INTERVAL = 10_000;

/** How often a list of one page is loaded (ms) while its numbers stay the same: its entries may still change. */
const SHORT_LIST_INTERVAL = 5_000;

/**
 * Loads a page of a list; returns the same as `useLoaded`. The first page is loaded again when the list's `numbers`
 * change, and from time to time if the list is short. Later pages stay as they are: each is a position in one reading.
 *
 * A server replies at least once a second. So a search that has found nothing goes on until it has, or has seen all.
 */
export function useList(path, numbers, isFirst) {
  const { current } = useRef({ key: "", at: 0, isLong: true, path, search: "none" });
  if (current.path !== path) Object.assign(current, { path, search: "none" });
  const key = numbers.join();
  const now = live.now();
  if (
    isFirst &&
    current.search !== "running" &&
    key !== current.key &&
    (!current.isLong || now - current.at >= LONG_LIST_INTERVAL)
  ) {
    Object.assign(current, { key, at: now });
  }
  const every = isFirst && !current.isLong ? SHORT_LIST_INTERVAL : undefined;
  const more = ({ messages, payloads, next }) => {
    if (!next || (messages ?? payloads).length > 0) {
      if (current.search === "running") current.search = "over";
      return undefined;
    }
    current.search = "running";
    const [bare, query = ""] = path.split("?");
    const params = new URLSearchParams(query);
    params.set("after", next);
    return `${bare}?${params}`;
  };
  const loaded = useLoaded(path, { version: current.key, every, more });
  current.isLong = loaded.data === undefined || loaded.data.next || current.search !== "none";
  return loaded;
}

/** What a list says while its search has found nothing yet. `looked`: how many entries it has gone through, if known. */
export function searchText(looked) {
  return looked > 0 ? `No match among the first ${count(looked)}. Searching on …` : "Searching …";
}
