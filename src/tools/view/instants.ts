import { LAST_DATE } from "../../inside.ts";

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
