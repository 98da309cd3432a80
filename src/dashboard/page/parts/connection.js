// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { second } from "../data/format.js";
import { useLive } from "../data/live.js";

/** Whether the numbers are live. It is announced when that changes, and not with each number. */
export function Connection() {
  const { status, at } = useLive();
  const text =
    status === "live"
      ? "Live"
      : status === "connecting"
        ? "Connecting…"
        : `Connection lost. ${at === undefined ? "" : `Numbers are from ${second(at)}. `}Trying again…`;
  return html`<p class="connection ${status}" role="status">${text}</p>`;
}
