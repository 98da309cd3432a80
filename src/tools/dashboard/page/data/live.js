// @ts-check
import { useEffect, useState } from "../../vendor/preact-htm.js";

// The page's one stream of events. EventSource gives up after an HTTP error, and does not notice a connection that dies
// silently. So this module reconnects itself, and treats long silence as a loss. The server ends each stream after a
// while. A stream that was live is reopened at once, and the connection counts as lost only if that fails.

/** How long a stream may be silent (ms). The server sends something every 4 s. */
const MAX_SILENCE = 10_000;

/** The first and the longest delay before a reconnect (ms). Each failure doubles the delay. */
const FIRST_RETRY = 1_000;
const LAST_RETRY = 10_000;

/** The latest numbers of all queues, and of the queue that the page shows. Disconnects while the page is hidden. */
class Live {
  /**
   * - `status`: "connecting", "live" or "lost"
   * - `queues`, `at`: the numbers of all queues, and when they were read (epoch ms, Redis server's clock)
   * - `trouble`: what is wrong with Redis itself; see data/trouble.js
   * - `queue`: the details of the queue that the page shows
   */
  #state = { status: "connecting" };
  #listeners = new Set();
  #name;
  #source;
  #retry = FIRST_RETRY;
  #retryTimer;
  #silenceTimer;
  /** How far the Redis server's clock is ahead of the browser's (ms). */
  #ahead = 0;
  /** Whether the current stream has delivered an event. */
  #isAlive = false;

  constructor() {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#disconnect();
      else this.#connect();
    });
  }

  get state() {
    return this.#state;
  }

  /** The time on the Redis server's clock (epoch ms), estimated from the last event. */
  now() {
    return Date.now() + this.#ahead;
  }

  /** Sets the queue to read in detail; undefined for none. */
  follow(name) {
    if (this.#source !== undefined && name === this.#name) return;
    if (name !== this.#name) this.#set({ queue: undefined });
    this.#name = name;
    this.#connect();
  }

  /** Calls `listener` with each new state. Returns a function that stops this. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #connect() {
    this.#disconnect();
    if (document.hidden) return;
    const query = this.#name === undefined ? "" : `?queue=${encodeURIComponent(this.#name)}`;
    const source = new EventSource(`api/events${query}`);
    this.#source = source;
    this.#isAlive = false;
    source.addEventListener("queues", ({ data }) => {
      const { at, queues, trouble } = JSON.parse(data);
      this.#arrived(at, { queues, trouble: trouble ?? undefined });
    });
    source.addEventListener("changes", ({ data }) => {
      const { at, queues, gone, trouble } = JSON.parse(data);
      const all = changed(this.#state.queues, queues, gone);
      this.#arrived(at, { queues: all, trouble: trouble ?? undefined });
    });
    source.addEventListener("queue", ({ data }) => {
      const queue = JSON.parse(data);
      this.#arrived(queue.at, { queue });
    });
    source.addEventListener("beat", ({ data }) => this.#arrived(JSON.parse(data).at, {}));
    source.addEventListener("error", () => this.#lost());
    this.#listen();
  }

  #disconnect() {
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#silenceTimer);
    this.#source?.close();
    this.#source = undefined;
  }

  #arrived(at, change) {
    this.#isAlive = true;
    this.#ahead = at - Date.now();
    this.#retry = FIRST_RETRY;
    this.#listen();
    this.#set({ status: "live", at, ...change });
  }

  #listen() {
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = setTimeout(() => this.#lost(), MAX_SILENCE);
  }

  #lost() {
    this.#disconnect();
    if (this.#isAlive) {
      this.#connect();
      return;
    }
    this.#set({ status: "lost" });
    this.#retryTimer = setTimeout(() => this.#connect(), this.#retry);
    this.#retry = Math.min(2 * this.#retry, LAST_RETRY);
  }

  #set(change) {
    this.#state = { ...this.#state, ...change };
    for (const listener of this.#listeners) listener(this.#state);
  }
}

/** The queues, in the server's order, with the rows that have changed, and without those that are gone. */
function changed(before, rows, gone) {
  if (rows.length + gone.length === 0) return before;
  const byName = new Map(before.map((row) => [row.name, row]));
  for (const row of rows) byName.set(row.name, row);
  for (const name of gone) byName.delete(name);
  const queues = [...byName.values()];
  return queues.length > before.length - gone.length
    ? queues.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    : queues;
}

/** The page's only instance. */
export const live = new Live();

/** The latest state. The component renders again with each new one. */
export function useLive() {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    setState(live.state);
    return live.subscribe(setState);
  }, []);
  return state;
}

/** The latest numbers of the queue that the page shows; undefined before the first event. */
export function useQueue(name) {
  const { queue } = useLive();
  return queue?.name === name ? queue : undefined;
}
