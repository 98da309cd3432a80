import { checkFunction } from "../../queue/checks.ts";

/**
 * Finds the handler of a message by the beginning of its business key, `system:module:business:id`.
 *
 * A route is one or more whole segments: `"app1:trans"` takes `"app1:trans"` and `"app1:trans:notice:7"`, and
 * not `"app1:transfer:1"`. The longest one wins. However many routes there are, a key costs a look per segment.
 */
export class Router<Handler> {
  readonly #routes: ReadonlyMap<string, Handler>;
  readonly #longest: number;

  /** @throws {TypeError} unless there is a route, each has a legal name, and each leads to a function. */
  constructor(routes: Readonly<Record<string, Handler>>) {
    // Of a Map's or an array's entries none is a route that anybody meant.
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

  /** The handler of a message with this key; undefined if it has none, or no route takes it. */
  find(key: string | undefined): Handler | undefined {
    if (key === undefined) return undefined;
    // Keys come from outside, and may be of any length: what is longer than every route is not looked up.
    let end = key.length > this.#longest ? key.lastIndexOf(":", this.#longest) : key.length;
    while (end > 0) {
      const handler = this.#routes.get(key.slice(0, end));
      if (handler !== undefined) return handler;
      end = key.lastIndexOf(":", end - 1);
    }
    return undefined;
  }

  /**
   * What a key that no route takes is counted under: its first three segments, without the id, of which there
   * may be any number; `""` for no key.
   */
  nameOf(key: string | undefined): string {
    return key?.split(":", 3).join(":") ?? "";
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
