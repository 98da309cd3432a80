import { DelaylineError } from "../errors.ts";
import { Inspector } from "../inspect/inspector.ts";
import { replyAsset } from "./asset.ts";
import { Call, type Running } from "./calls/call.ts";
import { EventStreams } from "./calls/event-streams.ts";
import { Guard } from "./http/guard.ts";
import { HttpError } from "./http/http-error.ts";
import {
  dashboardSettings,
  type DashboardOptions,
  type DashboardSettings,
} from "./http/options.ts";
import { QueueView } from "./readings/queue-view.ts";
import { Readings } from "./readings/readings.ts";
import { reply, replyError } from "./http/reply.ts";
import { readBody } from "./http/request-body.ts";
import { answer, findRoute } from "./routes.ts";
import { Sampler } from "./readings/sampler.ts";

/** A handler of requests. It can be mounted wherever a `Request` becomes a `Response`. */
export interface Dashboard extends AsyncDisposable {
  (request: Request): Promise<Response>;
  /** Ends the streams of events, and its connections to Redis. May be called twice. */
  close(): Promise<void>;
}

/** Longer URLs are refused. The longest that the page asks for has a queue's name and a key in it. */
const MAX_URL = 8192;

/**
 * A page that shows the queues, as one handler: `(request: Request) => Promise<Response>`.
 *
 * It takes part in nothing: it moves no messages and takes none. It connects to Redis when it is first asked, and reads the
 * numbers of all queues every two seconds while somebody looks, once for all who do; otherwise nothing. It never rejects.
 *
 * @throws {TypeError | RangeError} if an option is not legal.
 */
export function dashboard(options?: DashboardOptions): Dashboard {
  const server = new DashboardServer(dashboardSettings(options));
  const close = () => server.close();
  return Object.assign((request: Request) => server.handle(request), {
    close,
    [Symbol.asyncDispose]: close,
  });
}

class DashboardServer {
  readonly #settings: DashboardSettings;
  readonly #guard: Guard;
  #running: Running | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: DashboardSettings) {
    this.#settings = settings;
    this.#guard = new Guard(settings);
  }

  async handle(request: Request): Promise<Response> {
    try {
      return await this.#handle(request);
    } catch (error) {
      if (error instanceof HttpError) return replyError(error.status, error.message);
      // What Redis refuses is for people to read; these errors hold no password and no payload.
      if (error instanceof DelaylineError) return replyError(503, error.message);
      if (!request.signal.aborted) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
      return replyError(500, "this has failed; the process that serves the dashboard was warned");
    }
  }

  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async #handle(request: Request): Promise<Response> {
    if (this.#closing !== undefined) throw new HttpError(503, "the dashboard is closed");
    if (request.url.length > MAX_URL) throw new HttpError(414, "the URL is too long");
    await this.#guard.admit(request);
    const { pathname, searchParams } = new URL(request.url);
    const { basePath } = this.#settings;
    // The page's own URLs are relative, so it has to be at a path that ends with a slash.
    if (basePath !== "" && pathname === basePath) {
      return reply(null, 308, { location: `${basePath.split("/").at(-1)}/` });
    }
    // A framework may have taken it off.
    const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : pathname;
    if (path.startsWith("/api/")) {
      return await this.#call(path.slice("/api/".length), searchParams, request);
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return replyError(405, "only GET", { allow: "GET, HEAD" });
    }
    return replyAsset(path.slice(1), request) ?? replyError(404, "there is no such page");
  }

  async #call(path: string, query: URLSearchParams, request: Request): Promise<Response> {
    this.#guard.admitCall(request);
    const found = findRoute(path);
    if (found === undefined) throw new HttpError(404, "there is no such call");
    const { route, queue } = found;
    const { method } = request;
    const answering = method === "GET" || method === "POST" ? route[method] : undefined;
    if (answering === undefined) {
      const allow = Object.keys(route).join(", ");
      return replyError(405, `only ${allow}`, { allow });
    }
    if (method === "POST") this.#guard.admitChange(request);
    const body = method === "POST" ? await readBody(request) : {};
    return await answer(answering, new Call(this.#run(), { request, queue, query, body }));
  }

  #run(): Running {
    if (this.#running !== undefined) return this.#running;
    const settings = this.#settings;
    const { redis, interop, callTimeout } = settings;
    const inspector = new Inspector({
      ...(redis !== undefined && { redis }),
      ...(interop !== undefined && { interop }),
      ...(callTimeout !== undefined && { callTimeout }),
      // What a background connection meets is met by the calls, too, and they tell the page.
      onError: () => {},
    });
    const sampler = new Sampler(inspector);
    const view = new QueueView(inspector);
    const streams = new EventStreams(sampler, view);
    this.#running = { settings, inspector, sampler, view, streams, readings: new Readings() };
    return this.#running;
  }

  async #end(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    running.streams.close();
    running.sampler.close();
    running.readings.close();
    await running.inspector.close();
  }
}
