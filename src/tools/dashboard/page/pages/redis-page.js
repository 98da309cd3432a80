// @ts-check
import { html } from "../../vendor/preact-htm.js";
import { UNKNOWN, count, duration, isKnown, size } from "../data/format.js";
import { useLoaded } from "../data/loaded.js";
import { Instant } from "../parts/instant.js";
import { StateLine } from "../parts/state-line.js";
import { Text, visible } from "../parts/text.js";
import { Tile } from "../parts/tile.js";

/** How often to ask the servers (ms). */
const INTERVAL = 5_000;

/** The health of Redis itself, as each server tells it. */
export function RedisPage() {
  const loaded = useLoaded("api/redis", { every: INTERVAL });
  const servers = loaded.data?.servers ?? [];
  return html`<div>
    <div class="head">
      <h1 tabindex="-1">Redis</h1>
      <p>What each server says of itself. The doctor says what of it is wrong.</p>
    </div>
    <${StateLine} loaded=${loaded} />
    ${servers.map((server) => html`<${Server} key=${server.address} server=${server} />`)}
  </div>`;
}

function Server({ server }) {
  const { address, version, role, uptime, error } = server;
  return html`<section aria-label=${address}>
    <div class="head">
      <h2><${Text} of=${address} /></h2>
      ${
        !isKnown(error) &&
        html`<p>
          <span class="badge">${role}</span> version ${version ?? UNKNOWN}, up
          for${" "}${duration(uptime)}
        </p>`
      }
    </div>
    ${
      isKnown(error)
        ? html`<p class="failure" role="alert">Could not be asked: ${visible(error)}</p>`
        : html`<${Health} ...${server} />`
    }
  </section>`;
}

function isBroken(status) {
  return isKnown(status) && status !== "ok";
}

function Health(server) {
  const { usedMemory, maxMemory, policy, fragmentation, clients, maxClients, blockedClients } =
    server;
  const { operations, evicted, isAppending, appendStatus, savedAt, saveStatus } = server;
  const { isSaving, saves } = server;
  const { replicas, masterLink } = server;
  const limit = maxMemory > 0 ? `of ${size(maxMemory)}, ${policy}` : "no limit";
  return html`<div>
    <dl class="tiles card">
      <${Tile}
        label="Memory"
        value=${size(usedMemory)}
        more=${limit}
        isProblem=${maxMemory > 0 && usedMemory > 0.9 * maxMemory}
      />
      <${Tile} label="Fragmentation" value=${fragmentation ?? UNKNOWN} />
      <${Tile}
        label="Clients"
        value=${count(clients)}
        more=${isKnown(maxClients) ? `of ${count(maxClients)}` : ""}
      />
      <${Tile} label="Blocked clients" value=${count(blockedClients)} more="wait for messages" />
      <${Tile} label="Commands per second" value=${count(operations)} />
      <${Tile}
        label="Evicted keys"
        value=${count(evicted)}
        more="since the start"
        isProblem=${evicted > 0}
      />
      <${Tile} label="Replicas" value=${count(replicas)} />
    </dl>
    <dl class="pairs">
      ${[
        [
          "Append-only file",
          isAppending ? `on, last write ${appendStatus}` : "off",
          isAppending === false || isBroken(appendStatus),
        ],
        [
          "Snapshot",
          isSaving === false
            ? "off"
            : saves === 0
              ? "none since Redis started"
              : html`<span><${Instant} at=${savedAt} />, last save ${saveStatus ?? UNKNOWN}</span>`,
          isBroken(saveStatus),
        ],
        ...(isKnown(masterLink) ? [["Link to the master", masterLink, masterLink !== "up"]] : []),
      ].map(
        ([label, value, isProblem]) =>
          html`<div key=${label}>
            <dt>${label}</dt>
            <dd class=${isProblem ? "problem" : ""}>${value}</dd>
          </div>`,
      )}
    </dl>
  </div>`;
}
