// @ts-check
// The server's side of the dashboard, relative to where the page is mounted.

/** The path of something of a queue. */
export function queuePath(queue, rest = "", params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== "");
  const query = given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
  return `api/queues/${encodeURIComponent(escaped(queue))}${rest === "" ? "" : `/${rest}`}${query}`;
}

/** Reads JSON. Rejects with an Error that is fit for people. */
export async function read(path, signal) {
  return await request(path, { signal });
}

/** Changes something. Rejects with an Error that is fit for people. */
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
    throw new Error("the dashboard's server cannot be reached", { cause: error });
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok && body !== undefined) return body;
  throw new Error(textOf(body) ?? `the dashboard's server answered with status ${response.status}`);
}

function textOf(body) {
  return typeof body?.error === "string" ? body.error : undefined;
}

/** Browsers take "." and ".." out of a path, however they are encoded. */
function escaped(queue) {
  return /^~*\.{1,2}$/.test(queue) ? `~${queue}` : queue;
}
