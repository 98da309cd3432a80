import type { Sighting } from "./sighting.ts";

/**
 * How many of a message's failures, oldest first, happened before its last redrive. A redrive makes its attempts count
 * from 1 again.
 */
export function countBeforeRedrive({
  failures,
  attempts,
  state,
}: Pick<Sighting, "failures" | "attempts" | "state">): number {
  // The current attempt of a message in flight has not failed.
  const last = state === "in flight" ? attempts - 1 : attempts;
  return (
    failures.findLastIndex(
      ({ attempt }, i) => attempt > last || attempt >= (failures[i + 1]?.attempt ?? Infinity),
    ) + 1
  );
}
