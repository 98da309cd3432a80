import { isLate } from "../../inspect/is-late.ts";
import { isUnreadable, type Sighting } from "../../inspect/sighting.ts";

/**
 * The command to run next about a message that was found, and why. Returns undefined if there is nothing to do but
 * wait, or if the command cannot be pasted. `now` is the server's time (epoch ms).
 */
export function nextStep(
  seen: Sighting,
  now: number,
  commandLine: (...words: readonly string[]) => string | undefined,
): string | undefined {
  const [why, ...words] = stepOf(seen, now);
  if (why === undefined) return undefined;
  const command = commandLine(...words);
  return command === undefined ? undefined : `${why}: ${command}`;
}

/** Why, and then the words of the command; empty if there is nothing to do but wait. */
function stepOf(seen: Sighting, now: number): readonly string[] {
  const { state, queue, id, deadline, readyAt = Infinity } = seen;
  if (state === "dead") {
    return isUnreadable(seen)
      ? ["It is unreadable and cannot be redriven. To remove it", "dead", "remove", queue, id]
      : ["To deliver it again", "dead", "redrive", queue, id];
  }
  if (state === "delayed" || state === "retrying") {
    if (isLate(deadline, now)) return ["It is overdue. To find out why", "doctor", queue];
    return state === "retrying"
      ? ["To retry it now", "deliver-now", queue, id]
      : ["To cancel it (see also deliver-now and reschedule)", "cancel", queue, id];
  }
  return now - readyAt < SLOW ? [] : ["To find out what holds it up", "doctor", queue];
}

/** Milliseconds from which a message that is ready or in flight takes suspiciously long. */
const SLOW = 60_000;
