// @ts-check
// The dashboard's API. Paths are relative, so that the page works wherever it is mounted.

/** The path of a queue in the API, or of `rest` below it. Leaves out parameters that are undefined or empty. */
export function queuePath(queue, rest = "", params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  const query = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `api/queues/${encodeURIComponent(escaped(queue))}${rest === "" ? "" : `/${rest}`}${query}`;
}

/** Reads JSON. Rejects with an Error whose message can be shown to the user. */
export async function read(path, signal) {
  return await request(path, { signal });
}

/** Makes a change. Rejects with an Error whose message can be shown to the user. */
export async function change(path, body = {}) {
  return await request(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-delayline": "change" },
    body: JSON.stringify(body),
  });
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Error("cannot reach the dashboard's server", { cause: error });
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok && body !== undefined) return body;
  throw new Error(
    errorTextOf(body) ?? `the dashboard's server replied with status ${response.status}`,
  );
}

function errorTextOf(body) {
  return typeof body?.error === "string" ? body.error : undefined;
}

/** Browsers drop the path segments "." and "..", however they are encoded. The server's routes.ts undoes this. */
function escaped(queue) {
  return /^~*\.{1,2}$/.test(queue) ? `~${queue}` : queue;
}
