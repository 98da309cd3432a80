// @ts-check
import { useRef } from "../../vendor/preact-htm.js";
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
 */
export function useList(path, numbers, isFirst) {
  const latest = useRef({ key: "", at: 0, isLong: true });
  const { current } = latest;
  const key = numbers.join();
  const now = live.now();
  if (
    isFirst &&
    key !== current.key &&
    (!current.isLong || now - current.at >= LONG_LIST_INTERVAL)
  ) {
    Object.assign(current, { key, at: now });
  }
  const every = isFirst && !current.isLong ? SHORT_LIST_INTERVAL : undefined;
  const loaded = useLoaded(path, { version: current.key, every });
  current.isLong = loaded.data === undefined || Boolean(loaded.data.next);
  return loaded;
}
