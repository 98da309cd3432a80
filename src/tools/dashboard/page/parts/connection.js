// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { second } from "../data/format.js";
import { useLive } from "../data/live.js";

/** Shows whether the numbers are live. A screen reader announces changes of the connection, but not each update. */
export function Connection() {
  const { status, at } = useLive();
  const text =
    status === "live"
      ? "Live"
      : status === "connecting"
        ? "Connecting…"
        : `Connection lost. ${at === undefined ? "" : `Last update at ${second(at)}. `}Retrying…`;
  return html`<p class="connection ${status}" role="status"><span>${text}</span></p>`;
}
