import { isUnreadable, type Sighting } from "../../inspect/sighting.ts";

/**
 * What to do about a message that was found, as a command; undefined: wait, or no command can name the queue. `now` is the
 * server's time (epoch ms); `commandLine` makes a command of its words, if it can.
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

/** Why, and the words of the command; empty: wait. */
function stepOf(seen: Sighting, now: number): readonly string[] {
  const { state, queue, id, deadline, readyAt = Infinity } = seen;
  const isLate = now - deadline >= LATE;
  if (state === "dead") {
    return isUnreadable(seen)
      ? [
          "Nobody can read it, and so it cannot be redriven. To remove it",
          "dead",
          "remove",
          queue,
          id,
        ]
      : ["To deliver it again", "dead", "redrive", queue, id];
  }
  if (state === "delayed" || state === "retrying") {
    if (isLate) return ["It is overdue, and nobody has moved it. Why", "doctor", queue];
    return state === "retrying"
      ? ["To try it now", "deliver-now", queue, id]
      : ["To cancel it (or deliver-now, or reschedule ... --in 15m)", "cancel", queue, id];
  }
  return now - readyAt < SLOW ? [] : ["What holds it up", "doctor", queue];
}

/** From how many milliseconds on a message is late: sweeps come this often. */
const LATE = 5000;

/** From how many milliseconds on one that is ready or in hand is asked about. */
const SLOW = 60_000;
