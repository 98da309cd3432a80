import { useRef } from "../vendor/preact-htm.js";
import { live } from "./live.js";

/** How often a first page with more behind it is read anew, at most (ms): the server keeps each reading for a while. */
const OFTEN = 10_000;

/** How often a list of one page is read anew (ms), though its number is the same: others may have come. */
const EVERY = 5_000;

/**
 * What tells `useLoaded` to read a list anew: when the numbers that concern the list change, and now and then. A later page
 * stays as it is: it is a place in a reading that goes on.
 */
export function useListVersion(numbers, { isFirst, hasMore }) {
  const latest = useRef({ key: "", at: 0 });
  const key = numbers.join();
  const now = live.now();
  const isDue = !hasMore || now - latest.current.at >= OFTEN;
  if (isFirst && key !== latest.current.key && isDue) latest.current = { key, at: now };
  return { version: latest.current.key, every: isFirst && !hasMore ? EVERY : undefined };
}
