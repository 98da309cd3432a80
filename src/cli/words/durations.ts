import { UsageError } from "./usage-error.ts";
import { LAST_DATE } from "../../time/last-date.ts";

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
  ["ms", 1],
] as const;

const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|[dhms]))+$/;

/**
 * Reads a duration such as `15m`, `1h30m` or `500ms`; returns milliseconds.
 *
 * @throws {UsageError} naming the option, if it is none.
 */
export function parseDuration(option: string, text: string): number {
  if (!DURATION.test(text)) {
    throw new UsageError(
      `${option} must be a duration such as 500ms, 30s, 15m, 1h30m or 7d, got ${JSON.stringify(text)}`,
    );
  }
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)) {
    sum += Number(count) * (UNITS.find(([name]) => name === unit)?.[1] ?? 0);
  }
  return sum;
}

/** A duration in its two largest units: `2d 3h`, `15m`, `1.2s`. */
export function formatDuration(milliseconds: number): string {
  const whole = Math.round(Math.abs(milliseconds));
  if (!Number.isFinite(whole)) return "for ever";
  if (whole < 1000) return `${whole}ms`;
  if (whole < 10_000) return `${Math.floor(whole / 100) / 10}s`;
  let rest = Math.floor(whole / 1000) * 1000;
  const parts: string[] = [];
  for (const [unit, length] of UNITS) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count}${unit}`);
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
  }
  return parts.join(" ");
}

/** An instant (epoch ms) as seen from another: `in 15m`, `2h ago`, `now`. */
export function formatDistance(instant: number, now: number): string {
  const distance = instant - now;
  if (Math.abs(distance) < 1000) return "now";
  return distance > 0 ? `in ${formatDuration(distance)}` : `${formatDuration(distance)} ago`;
}

/** An instant (epoch ms) in the time of this machine, with its distance from UTC: `2026-11-22 09:00:00 +01:00`. */
export function formatInstant(instant: number): string {
  if (!(Math.abs(instant) <= LAST_DATE)) return String(instant);
  const date = new Date(instant);
  const offset = -date.getTimezoneOffset();
  const local = new Date(instant + offset * 60_000);
  const text = (Number.isNaN(local.getTime()) ? date : local).toISOString();
  const hours = String(Math.floor(Math.abs(offset) / 60)).padStart(2, "0");
  const minutes = String(Math.abs(offset) % 60).padStart(2, "0");
  const zone = offset === 0 ? "UTC" : `${offset < 0 ? "-" : "+"}${hours}:${minutes}`;
  return `${text.replace("T", " ").replace(/\.\d+Z$/, "")} ${zone}`;
}
