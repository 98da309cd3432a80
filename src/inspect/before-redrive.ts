import type { Sighting } from "./sighting.ts";

/**
 * How many of a message's failures, the oldest first, were before it was redriven the last time: its attempts began anew at 1
 * then.
 */
export function countBeforeRedrive({
  failures,
  attempts,
  state,
}: Pick<Sighting, "failures" | "attempts" | "state">): number {
  // The attempt that is being made has not failed.
  const last = state === "in flight" ? attempts - 1 : attempts;
  return (
    failures.findLastIndex(
      ({ attempt }, i) => attempt > last || attempt >= (failures[i + 1]?.attempt ?? Infinity),
    ) + 1
  );
}
