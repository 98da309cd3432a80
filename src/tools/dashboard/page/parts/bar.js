// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { HOME, PLACES, addressAt } from "../data/route.js";
import { Connection } from "./connection.js";
import { FindBox } from "./find-box.js";
import { Icon } from "./icon.js";

/** The bar at the top of every view: where one can go, the box that finds messages, and the connection. */
export function Bar({ page }) {
  const current = page in PLACES ? page : "queues";
  return html`<header class="bar">
    <div>
      <a class="brand" href=${HOME} aria-label="Delayline"
        ><${Icon} name="brand" /><span>Delayline</span></a
      >
      <nav class="places" aria-label="Views">
        <ul>
          ${Object.entries(PLACES).map(
            ([place, label]) =>
              html`<li key=${place}>
                <a href=${addressAt(place)} aria-current=${place === current ? "page" : undefined}
                  ><${Icon} name=${place} />${label}</a
                >
              </li>`,
          )}
        </ul>
      </nav>
      <${FindBox} />
      <${Connection} />
    </div>
  </header>`;
}
