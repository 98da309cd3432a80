import { checkFunction } from "../../queue/checks.ts";

/**
 * Finds the handler of a message by the beginning of its business key, `system:module:business:id`.
 *
 * A route is one or more whole segments: `"app1:trans"` takes `"app1:trans"` and `"app1:trans:notice:7"`, but not
 * `"app1:transfer:1"`. The longest matching route wins. Finding it costs one look-up per segment of the key, however
 * many routes there are.
 */
export class Router<Handler> {
  readonly #routes: ReadonlyMap<string, Handler>;
  readonly #longest: number;

  /** @throws {TypeError} unless there is at least one route, with legal names and functions as handlers. */
  constructor(routes: Readonly<Record<string, Handler>>) {
    // An array passes for an object, but its indexes are not routes.
    if (typeof routes !== "object" || routes === null || Array.isArray(routes)) {
      const got = Array.isArray(routes) ? "an array" : routes === null ? "null" : typeof routes;
      throw new TypeError(`routes must be an object, got ${got}`);
    }
    const entries = Object.entries(routes);
    if (entries.length === 0) throw new TypeError("routes must have at least one entry, got none");
    for (const [name, handler] of entries) {
      checkRoute(name);
      checkFunction(`the handler of route "${name}"`, handler);
    }
    this.#routes = new Map(entries);
    this.#longest = entries.reduce((most, [name]) => Math.max(most, name.length), 0);
  }

  /** Returns the handler for a key; undefined without a key, or if no route takes it. */
  find(key: string | undefined): Handler | undefined {
    if (key === undefined) return undefined;
    // Foreign keys may have any length. Start with the longest beginning that a route can have.
    let end = key.length > this.#longest ? key.lastIndexOf(":", this.#longest) : key.length;
    while (end > 0) {
      const handler = this.#routes.get(key.slice(0, end));
      if (handler !== undefined) return handler;
      end = key.lastIndexOf(":", end - 1);
    }
    return undefined;
  }

  /**
   * Returns the name under which to count a key that no route takes: its first three segments, without the id, since
   * ids are unlimited in number; `""` without a key.
   */
  nameOf(key: string | undefined): string {
    return key?.split(":", 3).join(":") ?? "";
  }
}

/**
 * Counts messages that no route takes, by name.
 *
 * Keys are foreign input and may hold anything. So it keeps 1,000 names at most. All others are counted together as
 * `"other"`, and so are names longer than a legal key.
 */
export class UnknownCounts {
  readonly #counts = new Map<string, number>();

  /** The counts so far, as a live view. */
  get entries(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Counts one message. */
  count(name: string): void {
    const isCounted =
      this.#counts.has(name) || (this.#counts.size < MAX_NAMES && name.length <= MAX_NAME_LENGTH);
    const counted = isCounted ? name : "other";
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
  }
}

function checkRoute(name: string): void {
  if (name === "") throw new TypeError("a route must not be empty");
  if (!name.isWellFormed()) {
    throw new TypeError(`a route must be well-formed Unicode, got ${JSON.stringify(name)}`);
  }
  if (name.startsWith(":") || name.endsWith(":")) {
    throw new TypeError(`a route must not begin or end with ":", got "${name}"`);
  }
}

/** Enough for all kinds of messages of an application; a few hundred kilobytes at most. */
const MAX_NAMES = 1_000;

/** The length of the longest legal business key. */
const MAX_NAME_LENGTH = 200;
