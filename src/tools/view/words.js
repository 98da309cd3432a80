// @ts-check
// Counts, durations and distances in words, written once: the page runs this file as it stands.

const NUMBER = new Intl.NumberFormat("en-US");

/**
 * A number with thousands separators, and if a noun is given, how many of what: `1 message`, `2,000 messages`.
 *
 * @param {number} count
 * @param {string} [noun]
 * @param {string} [plural]
 */
export function formatCount(count, noun, plural = `${noun}s`) {
  const digits = NUMBER.format(count);
  return noun === undefined ? digits : `${digits} ${count === 1 ? noun : plural}`;
}

/** @type {readonly (readonly [name: string, milliseconds: number])[]} */
const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/**
 * A duration (ms) in its two largest units: `3 d 4 h`, `2 min 5 s`, `1.2 s`, `40 ms`, `forever`.
 *
 * @param {number} milliseconds
 */
export function formatDuration(milliseconds) {
  const whole = Math.round(Math.abs(milliseconds));
  if (!Number.isFinite(whole)) return "forever";
  if (whole < 1000) return `${whole} ms`;
  if (whole < 10_000) return `${Math.floor(whole / 100) / 10} s`;
  const first = UNITS.findIndex(([, length]) => whole >= length);
  const [[name, length], next] = /** @type {typeof UNITS} */ (UNITS.slice(first, first + 2));
  const large = `${NUMBER.format(Math.floor(whole / length))} ${name}`;
  const rest = next === undefined ? 0 : Math.floor((whole % length) / next[1]);
  // A zero ends it: `1 d`, not `1 d 5 min`.
  return rest === 0 ? large : `${large} ${rest} ${next[0]}`;
}

/**
 * An instant relative to `now`, both in epoch ms: `in 15 min`, `2 h ago`, `now`, `never`.
 *
 * @param {number} instant
 * @param {number} now
 */
export function formatDistance(instant, now) {
  const distance = instant - now;
  if (distance === Infinity) return "never";
  if (Math.abs(distance) < 1000) return "now";
  return distance > 0 ? `in ${formatDuration(distance)}` : `${formatDuration(distance)} ago`;
}

/**
 * As {@link formatDistance}, but in whole seconds below a minute and in whole minutes above: beside a clock that shows
 * minutes, more would only flicker.
 *
 * @param {number} instant
 * @param {number} now
 */
export function formatRoughDistance(instant, now) {
  const step = Math.abs(instant - now) < 60_000 ? 1000 : 60_000;
  return formatDistance(Math.round((instant - now) / step) * step, 0);
}
