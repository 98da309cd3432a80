import { useRef } from "../vendor/preact-htm.js";
import { live } from "./live.js";

/** How often a first page with more behind it is read anew, at most (ms): the server keeps each reading for a while. */
const OFTEN = 10_000;

/**
 * What tells `useLoaded` to read a list anew: it changes with the numbers that concern the list. Of a later page it stays:
 * that is a place in a reading that goes on.
 */
export function useListVersion(numbers, { isFirst, hasMore }) {
  const version = useRef({ key: "", at: 0 });
  const key = numbers.join();
  const now = live.now();
  const isDue = !hasMore || now - version.current.at >= OFTEN;
  if (isFirst && key !== version.current.key && isDue) version.current = { key, at: now };
  return version.current.key;
}
