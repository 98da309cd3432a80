// @ts-check
import { html } from "../../vendor/preact-htm.js";

/** Outlines in a square of 24. */
const OUTLINES = {
  brand: "M12 3a9 9 0 1 0 9 9M12 7v5l3.5 2M17 3h4v4M21 3l-5 5",
  find: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.5 4.5",
  queues: "M4 6h16M4 12h16M4 18h10",
  busy: "M3 12h4l3-8 4 16 3-8h4",
  month: "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
  doctor: "M12 4v16M4 12h16",
  redis: "M4 6c0 4 16 4 16 0s-16-4-16 0zM4 6v12c0 4 16 4 16 0V6M4 12c0 4 16 4 16 0",
};

/** A picture beside its name, and so hidden from screen readers. */
export function Icon({ name }) {
  return html`<svg
    class="icon"
    viewBox="0 0 24 24"
    fill="none"
    stroke="currentColor"
    stroke-width="2"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    <path d=${OUTLINES[name]} />
  </svg>`;
}
