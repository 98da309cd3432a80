// @ts-check
import { useEffect, useState } from "../../vendor/preact-htm.js";

// Routes are in the URL's fragment, so that the dashboard can be mounted at any path:
//   #/                                  all queues
//   #/queue/NAME                        one queue
//   #/queue/NAME/messages?prefix=P      also: dead, quarantine, consumers
//   #/queue/NAME/message?id=ID          one message

const PAGES = ["overview", "messages", "message", "dead", "quarantine", "consumers"];

/** The route of a fragment. Its `page` is `missing` if there is no such page. */
export function parseRoute(fragment) {
  const [path = "", query = ""] = splitOnce(fragment.replace(/^#/u, ""), "?");
  const params = Object.fromEntries(new URLSearchParams(query));
  const [root, name, page = "overview", ...more] = path.split("/").filter((part) => part !== "");
  if (root === undefined) return { page: "queues", queue: undefined, params };
  const queue = name === undefined ? undefined : decode(name);
  if (root !== "queue" || queue === undefined || more.length > 0 || !PAGES.includes(page)) {
    return { page: "missing", queue: undefined, params };
  }
  return { page, queue, params };
}

/** The address of the list of queues. */
export const HOME = "#/";

/** The address of a page of a queue. Leaves out parameters that are undefined or empty. */
export function addressOf(queue, page = "overview", params = {}) {
  const path = `#/queue/${encodeURIComponent(queue)}${page === "overview" ? "" : `/${page}`}`;
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

/** The current route. Ignores fragments that are not routes, such as links into the page. */
export function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = () => {
      if (location.hash === "" || location.hash.startsWith("#/"))
        setRoute(parseRoute(location.hash));
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

function splitOnce(text, separator) {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
