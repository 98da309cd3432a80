/**
 * The instants (epoch ms) at which local clocks show a given time on a given day: usually one, two where clocks go
 * back, none where they go forward over it.
 */
export function momentsOf(
  [year, month, day]: readonly [year: number, month: number, day: number],
  [hours, minutes, seconds, milliseconds]: readonly [number, number, number, number],
): number[] {
  const shown = Date.UTC(year, month, day, hours, minutes, seconds, milliseconds);
  // The offsets from UTC on either side of any clock change that day.
  const offsets = [shown - DAY, shown + DAY].map((near) => new Date(near).getTimezoneOffset());
  return [...new Set(offsets)]
    .map((offset) => shown + offset * MINUTE)
    .filter((moment) => moment - new Date(moment).getTimezoneOffset() * MINUTE === shown)
    .toSorted((a, b) => a - b);
}

const MINUTE = 60_000;
const DAY = 86_400_000;
