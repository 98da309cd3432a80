// @ts-check
import { useEffect, useState } from "../../vendor/preact-htm.js";

// One stream of events for the page. EventSource gives up for good after an error of HTTP, and says nothing when
// a connection is silently gone; so we open it anew ourselves, and take long silence for a loss. The server ends each
// stream after a while: one that was live is opened anew at once, and it is lost only if that fails.

const SILENCE = 10_000;
const FIRST_RETRY = 1_000;
const LAST_RETRY = 10_000;

/** The numbers as they come. While the page cannot be seen nothing is read. */
class Live {
  /** `status`: "connecting", "live" or "lost"; `trouble`: why the queues could not be found in the last round. */
  #state = { status: "connecting" };
  #listeners = new Set();
  #name;
  #source;
  #retry = FIRST_RETRY;
  #retryTimer;
  #silenceTimer;
  /** How far the server's clock is ahead of ours, in milliseconds. */
  #ahead = 0;
  /** Whether this stream has said anything. */
  #isAlive = false;
  /** Of the round that is arriving. */
  #trouble;

  constructor() {
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#disconnect();
      else this.#connect();
    });
  }

  get state() {
    return this.#state;
  }

  /** The time on the server's clock, as far as we know it. */
  now() {
    return Date.now() + this.#ahead;
  }

  /** Also reads the numbers of this queue; undefined: of none. */
  follow(name) {
    if (this.#source !== undefined && name === this.#name) return;
    if (name !== this.#name) this.#set({ queue: undefined });
    this.#name = name;
    this.#connect();
  }

  /** Returns what ends it. */
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
    source.addEventListener("trouble", ({ data }) => {
      this.#trouble = JSON.parse(data).error;
    });
    source.addEventListener("queues", ({ data }) => {
      const { at, queues } = JSON.parse(data);
      this.#arrived(at, { at, queues, trouble: this.#trouble });
      this.#trouble = undefined;
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
    this.#set({ status: "live", ...change });
  }

  #listen() {
    clearTimeout(this.#silenceTimer);
    this.#silenceTimer = setTimeout(() => this.#lost(), SILENCE);
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

/** The only one. */
export const live = new Live();

/** The latest numbers; the component is drawn again with each. */
export function useLive() {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    setState(live.state);
    return live.subscribe(setState);
  }, []);
  return state;
}

/** The latest numbers of the queue whose page this is; undefined before the first. */
export function useQueue(name) {
  const { queue } = useLive();
  return queue?.name === name ? queue : undefined;
}
