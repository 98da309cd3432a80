import type { Sighting } from "../inspect/sighting.ts";
import { quoted } from "./output.ts";

/** What to do about a message that was found, as a command; undefined: wait. `now` is the server's time (epoch ms). */
export function nextStep(
  { state, queue, id, deadline, readyAt = Infinity }: Sighting,
  now: number,
): string | undefined {
  const name = asWord(queue);
  switch (state) {
    case "dead":
      return `To deliver it again: delayline dead redrive ${name} ${id}`;
    case "retrying":
      return `To try it now: delayline deliver-now ${name} ${id}`;
    case "delayed":
      return now - deadline < LATE
        ? `To change that: delayline deliver-now, reschedule or cancel ${name} ${id}`
        : `It is overdue, and nobody has moved it. Why: delayline doctor ${name}`;
    default:
      return now - readyAt < SLOW ? undefined : `What holds it up: delayline doctor ${name}`;
  }
}

/** A name as a word of a command line, if it is a plain one; otherwise in quotes, to be read by a person. */
export function asWord(name: string): string {
  return /^[\w.:@/][\w.:@/-]*$/.test(name) ? name : quoted(name);
}

/** From how many milliseconds on a message is late: sweeps come this often. */
const LATE = 5000;

/** From how many milliseconds on one that is ready or in hand is asked about. */
const SLOW = 60_000;
