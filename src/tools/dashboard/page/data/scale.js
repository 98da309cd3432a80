// @ts-check
import { duration, short } from "./format.js";

// Scales for the value axis of a plot: `format` writes a value, `steps` are the possible steps of the grid, and `least`
// is the smallest value at the top of the axis.

const DECADES = Array.from({ length: 10 }, (_, power) => 10 ** power);

/** Numbers of messages. */
export const COUNTS = {
  format: short,
  steps: DECADES.flatMap((decade) => [decade, 2 * decade, 5 * decade]),
  least: 4,
};

/** Durations in milliseconds. */
export const DURATIONS = {
  format: duration,
  steps: [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    ...[1, 2, 5, 10, 30].map((seconds) => seconds * 1_000),
    ...[1, 2, 5, 10, 30].map((minutes) => minutes * 60_000),
    ...[1, 2, 6, 12].map((hours) => hours * 3_600_000),
    ...[1, 2, 5, 10, 50, 100, 500, 1_000, 10_000].map((days) => days * 86_400_000),
  ],
  least: 1_000,
};

/** Messages per second. */
export const RATES = {
  format: (value) => (value < 10 ? String(Math.round(value * 100) / 100) : short(value)),
  steps: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...COUNTS.steps],
  least: 1,
};
