// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { second } from "../data/format.js";
import { useLive } from "../data/live.js";
import { isSilent } from "../data/trouble.js";

/** Shows whether the numbers are live. A screen reader announces changes of the connection, but not each update. */
export function Connection() {
  const { status, at, trouble } = useLive();
  const isMute = status === "live" && isSilent(trouble);
  const text =
    status === "live"
      ? isMute
        ? "Redis does not answer"
        : "Live"
      : status === "connecting"
        ? "Connecting…"
        : `Connection lost. ${at === undefined ? "" : `Last update at ${second(at)}. `}Retrying…`;
  return html`<p class=${`connection ${isMute ? "lost" : status}`} role="status">
    <span>${text}</span>
  </p>`;
}
