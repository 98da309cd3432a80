import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

/** The properties that frameworks add to a request of node:http. */
interface Mounted {
  /** The URL before Express stripped the path at which the handler is mounted. */
  readonly originalUrl?: string;
  /** The path that Express stripped. */
  readonly baseUrl?: string;
  /** The body, if the framework has already parsed it. */
  readonly body?: unknown;
}

/**
 * Adapts a handler of Fetch API requests to node:http, and so to Express, Nest, Fastify (`request.raw`, `reply.raw`)
 * and other frameworks on top of it. Never throws, and leaves no rejection unhandled.
 *
 * ```ts
 * const board = dashboard({ redis });
 * http.createServer(nodeHandler(board)).listen(8080, "127.0.0.1");
 * ```
 */
export function nodeHandler(
  handler: (request: Request) => Promise<Response>,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    void serve(handler, request, response).catch(() => {
      // The connection has ended, or the request cannot become a Request.
      if (!response.headersSent) response.writeHead(400);
      response.end();
    });
  };
}

async function serve(
  handler: (request: Request) => Promise<Response>,
  incoming: IncomingMessage & Mounted,
  outgoing: ServerResponse,
): Promise<void> {
  const { originalUrl, baseUrl = "" } = incoming;
  // The page's relative URLs need the slash at the end.
  if (baseUrl !== "" && originalUrl?.split("?")[0] === baseUrl) {
    outgoing.writeHead(308, { location: `${baseUrl.split("/").at(-1)}/` }).end();
    return;
  }
  const ended = new AbortController();
  outgoing.once("close", () => ended.abort());
  const response = await handler(requestOf(incoming, ended.signal));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null || incoming.method === "HEAD") {
    outgoing.end();
    return;
  }
  const body = Readable.fromWeb(response.body);
  ended.signal.addEventListener("abort", () => body.destroy());
  body.on("error", () => outgoing.destroy());
  outgoing.flushHeaders();
  body.pipe(outgoing);
}

function requestOf(incoming: IncomingMessage & Mounted, signal: AbortSignal): Request {
  const { method = "GET", headers, url = "/", socket } = incoming;
  const isEncrypted = "encrypted" in socket && socket.encrypted === true;
  const origin = `${isEncrypted ? "https" : "http"}://${headers.host ?? "localhost"}`;
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || name.startsWith(":") ? [] : [[name, String(value)] as [string, string]],
  );
  const request = new Request(new URL(origin + url), {
    method,
    headers: entries,
    signal,
    ...(method !== "GET" && method !== "HEAD" && bodyOf(incoming)),
  });
  setPeer(request, socket.remoteAddress ?? "");
  return request;
}

/** The request's body. If the framework has consumed and parsed it, the parsed value is written as JSON again. */
function bodyOf(incoming: IncomingMessage & Mounted): RequestInit {
  const { body } = incoming;
  if (body !== undefined && incoming.readableEnded) return { body: JSON.stringify(body) };
  return { body: Readable.toWeb(incoming) as ReadableStream, duplex: "half" };
}

// A Request does not carry the client's address. Code that builds one from a connection notes the address here.
const peers = new WeakMap<Request, string>();

/** Notes the address that a request came from. */
export function setPeer(request: Request, address: string): void {
  peers.set(request, address);
}

/** The address that a request came from; undefined if none was noted. */
export function peerOf(request: Request): string | undefined {
  return peers.get(request);
}
