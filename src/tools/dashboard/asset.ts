import { ASSETS } from "./assets.ts";
import { reply } from "./http/reply.ts";

/**
 * Replies with the file of the page that is served under this path; undefined if there is none. Browsers may keep the
 * file, but have to revalidate it each time.
 */
export function replyAsset(path: string, request: Request): Response | undefined {
  const name = path === "" ? "page/index.html" : path;
  const asset = Object.hasOwn(ASSETS, name) ? ASSETS[name] : undefined;
  if (asset === undefined) return undefined;
  const headers = { etag: asset.tag, "cache-control": "no-cache" };
  const known = (request.headers.get("if-none-match") ?? "").split(",").map((tag) => tag.trim());
  // A proxy that compresses responses makes the tag a weak one.
  if (known.some((tag) => tag.replace(/^W\//, "") === asset.tag)) return reply(null, 304, headers);
  const body = request.method === "HEAD" ? null : asset.text;
  return reply(body, 200, { ...headers, "content-type": asset.type });
}
