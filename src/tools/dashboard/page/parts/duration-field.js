// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { instantText } from "../data/format.js";
import { live } from "../data/live.js";

/** @type {[name: string, milliseconds: number][]} */
const UNITS = [
  ["seconds", 1_000],
  ["minutes", 60_000],
  ["hours", 3_600_000],
  ["days", 86_400_000],
];

/** Writes a duration as `{ amount, unit }`, in the largest unit that gives a whole number; none is 0 seconds. */
export function splitDuration(milliseconds) {
  const isWhole = ([, size]) => milliseconds >= size && milliseconds % size === 0;
  const unit = UNITS.findLast(isWhole) ?? UNITS[0];
  return { amount: String(milliseconds / unit[1]), unit: unit[0] };
}

/** Reads `{ amount, unit }` as milliseconds; undefined if the amount is not a number of 0 or more. */
export function joinDuration({ amount, unit }) {
  const size = UNITS.find(([name]) => name === unit)?.[1];
  const number = amount.trim() === "" ? Number.NaN : Number(amount);
  return Number.isFinite(number) && number >= 0 ? Math.round(number * size) : undefined;
}

/** A field for a duration, `{ amount, unit }`. Shows the instant that is this far away on the Redis server's clock. */
export function DurationField({ label, value, onChange }) {
  const milliseconds = joinDuration(value);
  return html`<fieldset class="duration">
    <legend>${label}</legend>
    <input
      type="number"
      min="0"
      step="any"
      required
      aria-label="Amount"
      aria-describedby="duration-hint"
      value=${value.amount}
      onInput=${(event) => onChange({ ...value, amount: event.target.value })}
    />
    <select
      aria-label="Unit"
      value=${value.unit}
      onChange=${(event) => onChange({ ...value, unit: event.target.value })}
    >
      ${UNITS.map(([name]) => html`<option value=${name} selected=${name === value.unit}>${name}</option>`)}
    </select>
    <p id="duration-hint" class="quiet">
      ${milliseconds === undefined ? "Enter a number of 0 or more." : `At ${instantText(live.now() + milliseconds)}.`}
    </p>
  </fieldset>`;
}
