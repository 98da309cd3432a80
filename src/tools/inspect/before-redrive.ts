import type { Sighting } from "./sighting.ts";

/**
 * How many of a message's failures, oldest first, happened before its last redrive. A redrive makes its attempts count
 * from 1 again.
 */
export function countBeforeRedrive({
  failures,
  attempts,
  state,
  heldBackUntil,
}: Pick<Sighting, "failures" | "attempts" | "state"> &
  Partial<Pick<Sighting, "heldBackUntil">>): number {
  // The current attempt of a message in flight has not failed. One that is held back has none.
  const last = state === "in flight" && heldBackUntil === undefined ? attempts - 1 : attempts;
  return (
    failures.findLastIndex(
      ({ attempt }, i) => attempt > last || attempt >= (failures[i + 1]?.attempt ?? Infinity),
    ) + 1
  );
}
