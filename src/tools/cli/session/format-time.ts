import { LAST_DATE, durations } from "../../../inside.ts";

/** A duration in its two largest units: `2d 3h`, `15m`, `1.2s`. */
export function formatDuration(milliseconds: number): string {
  const whole = Math.round(Math.abs(milliseconds));
  if (!Number.isFinite(whole)) return "forever";
  if (whole < 1000) return `${whole}ms`;
  if (whole < 10_000) return `${Math.floor(whole / 100) / 10}s`;
  let rest = Math.floor(whole / 1000) * 1000;
  const parts: string[] = [];
  for (const [unit, length] of durations.UNITS) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count}${unit}`);
    // A zero ends it: `1d`, not `1d 5m`.
    if (parts.length === 2 || (parts.length === 1 && count === 0)) break;
  }
  return parts.join(" ");
}

/** An instant relative to `now`, both in epoch ms: `in 15m`, `2h ago`, `now`, `never`. */
export function formatDistance(instant: number, now: number): string {
  const distance = instant - now;
  if (distance === Infinity) return "never";
  if (Math.abs(distance) < 1000) return "now";
  return distance > 0 ? `in ${formatDuration(distance)}` : `${formatDuration(distance)} ago`;
}

/** An instant (epoch ms) in local time, with the offset from UTC: `2026-11-22 09:00:00 +01:00`. */
export function formatInstant(instant: number): string {
  if (!(Math.abs(instant) <= LAST_DATE)) return String(instant);
  const date = new Date(instant);
  const offset = -date.getTimezoneOffset();
  const local = new Date(instant + offset * 60_000);
  // The local time of an instant close to the last one may be beyond what a Date can hold.
  const text = (Number.isNaN(local.getTime()) ? date : local).toISOString();
  const hours = String(Math.floor(Math.abs(offset) / 60)).padStart(2, "0");
  const minutes = String(Math.abs(offset) % 60).padStart(2, "0");
  const zone = offset === 0 ? "UTC" : `${offset < 0 ? "-" : "+"}${hours}:${minutes}`;
  return `${text.replace("T", " ").replace(/\.\d+Z$/, "")} ${zone}`;
}

/** An instant (epoch ms) as clocks show it in a time zone: `2026-11-22 09:00:00 Europe/Berlin`. */
export function formatInstantIn(instant: number, timeZone: string): string {
  // The format of Sweden is that of ISO 8601, with a space.
  return `${new Date(instant).toLocaleString("sv-SE", { timeZone })} ${timeZone}`;
}
