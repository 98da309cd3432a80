/** A duration (milliseconds) in words: `340 ms`, `12 s`, `5 min`, `3 h 20 min`, `2 d 4 h`. */
export function inWords(duration: number): string {
  if (duration < 1000) return `${Math.round(duration)} ms`;
  const seconds = Math.floor(duration / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return join(`${hours} h`, minutes % 60, "min");
  return join(`${Math.floor(hours / 24)} d`, hours % 24, "h");
}

/** An instant (epoch ms) in UTC. */
export function instant(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? `${at} ms` : date.toISOString();
}

/** How many of what: `1 message`, `2 messages`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** The form of a verb that agrees with a count: `is` or `are`. */
export function agree(number: number, one: string, many: string): string {
  return number === 1 ? one : many;
}

function join(large: string, rest: number, unit: string): string {
  return rest === 0 ? large : `${large} ${rest} ${unit}`;
}
