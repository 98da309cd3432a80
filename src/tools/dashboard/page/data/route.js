// @ts-check
import { useEffect, useState } from "../../vendor/preact-htm.js";
import { STATES } from "./states.js";

// Routes are in the URL's fragment, so that the dashboard can be mounted at any path:
//   #/?show=problems&sort=-dead         all queues
//   #/find?q=KEY                        a message in all queues
//   #/busy  #/month  #/doctor  #/redis  other views of all queues
//   #/queue/NAME                        one queue
//   #/queue/NAME/dead?prefix=P          one list: delayed, ready, in-flight, retrying, dead, quarantined
//   #/queue/NAME/message?id=ID          one message, by id or key
// The runbook links of the alert rules lead here, so routes stay as they are.

/** The views that the navigation leads to, and their names. */
export const NAMED_VIEWS = {
  queues: "Queues",
  busy: "Busy",
  month: "Month",
  doctor: "Doctor",
  redis: "Redis",
};

/** The views of all queues. */
const VIEWS = [...Object.keys(NAMED_VIEWS), "find"];

/** The views of one queue. */
const PAGES = [
  "overview",
  "messages",
  "message",
  "consumers",
  "schedules",
  "log",
  ...Object.values(STATES).map(({ slug }) => slug),
];

/** The route of a fragment. Its `page` is `missing` if there is no such page. */
export function parseRoute(fragment) {
  const [path = "", query = ""] = splitOnce(fragment.replace(/^#/u, ""), "?");
  const params = Object.fromEntries(new URLSearchParams(query));
  const missing = { page: "missing", queue: undefined, params };
  const [root = "queues", name, page = "overview", ...more] = path
    .split("/")
    .filter((part) => part !== "");
  if (VIEWS.includes(root)) {
    return name === undefined ? { page: root, queue: undefined, params } : missing;
  }
  const queue = name === undefined ? undefined : decode(name);
  if (root !== "queue" || queue === undefined || more.length > 0 || !PAGES.includes(page)) {
    return missing;
  }
  return { page, queue, params };
}

/** The address of the list of queues. */
export const HOME = "#/";

/** The address of a view of all queues. Leaves out parameters that are undefined or empty. */
export function addressAt(view, params = {}) {
  return `${HOME}${view === "queues" ? "" : view}${queryOf(params)}`;
}

/** The address of a page of a queue. Leaves out parameters that are undefined or empty. */
export function addressOf(queue, page = "overview", params = {}) {
  const path = `#/queue/${encodeURIComponent(queue)}${page === "overview" ? "" : `/${page}`}`;
  return `${path}${queryOf(params)}`;
}

function queryOf(params) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

/** Goes to an address that replaces the current one, such as the same list in another order. */
export function replaceAddress(address) {
  history.replaceState(history.state, "", address);
  dispatchEvent(new HashChangeEvent("hashchange"));
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
