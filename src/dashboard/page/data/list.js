// @ts-check
import { useRef } from "../../vendor/preact-htm.js";
import { live } from "./live.js";
import { useLoaded } from "./loaded.js";

/** How often a first page with more behind it is read anew, at most (ms): the server keeps each reading for a while. */
const OFTEN = 10_000;

/** How often a list of one page is read anew (ms), though its number is the same: others may have come. */
const EVERY = 5_000;

/**
 * A page of a list, as `useLoaded` tells it. The first is read anew when the numbers that concern the list change, and now
 * and then. A later page stays as it is: it is a place in a reading that goes on.
 */
export function useList(path, numbers, isFirst) {
  const latest = useRef({ key: "", at: 0, isLong: true });
  const { current } = latest;
  const key = numbers.join();
  const now = live.now();
  if (isFirst && key !== current.key && (!current.isLong || now - current.at >= OFTEN)) {
    Object.assign(current, { key, at: now });
  }
  const every = isFirst && !current.isLong ? EVERY : undefined;
  const loaded = useLoaded(path, { version: current.key, every });
  current.isLong = loaded.data === undefined || Boolean(loaded.data.next);
  return loaded;
}
