// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { HOME, NAMED_VIEWS, addressAt } from "../data/route.js";
import { Connection } from "./connection.js";
import { FindBox } from "./find-box.js";
import { Icon } from "./icon.js";
import { Keys } from "./keys.js";
import { useShell } from "./shell.js";
import { visible } from "./text.js";

/** The bar at the top of every view: where one can go, the box that finds messages, which Redis it is, and the connection. */
export function Bar({ page }) {
  const current = page in NAMED_VIEWS ? page : "queues";
  return html`<header class="bar">
    <div>
      <a class="brand" href=${HOME} aria-label="Delayline"
        ><${Icon} name="brand" /><span>Delayline</span></a
      >
      <nav class="views" aria-label="Views">
        <ul>
          ${Object.entries(NAMED_VIEWS).map(
            ([view, label]) =>
              html`<li key=${view}>
                <a href=${addressAt(view)} aria-current=${view === current ? "page" : undefined}
                  ><${Icon} name=${view} />${label}</a
                >
              </li>`,
          )}
        </ul>
      </nav>
      <${FindBox} />
      <${Where} />
      <${Connection} />
      <${Keys} />
    </div>
  </header>`;
}

/** Which Redis this is, and which database. */
function Where() {
  const { session } = useShell();
  const where = visible(session?.where ?? "");
  return html`<p class="redis" title=${where}>${where}</p>`;
}
