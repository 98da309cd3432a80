import type { Sighting } from "../inspect/sighting.ts";

/**
 * Whether a dead letter is none of ours: it can be removed, and not redriven. A handler may have given the same word as its
 * reason; but only an id that is made of the letter's place begins with the time of its death.
 */
export function isUnreadable({ reason, deadline, diedAt }: Sighting): boolean {
  return reason === "unreadable" && deadline === diedAt;
}
