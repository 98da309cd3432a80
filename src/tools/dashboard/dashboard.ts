import { DelaylineError } from "../../index.ts";
import { Inspector } from "../view/inspector.ts";
import { ASSETS } from "./assets.ts";
import { ApiCall, type Running } from "./calls/api-call.ts";
import { EventStreams } from "./calls/event-streams.ts";
import {
  dashboardSettings,
  type DashboardOptions,
  type DashboardSettings,
} from "./dashboard-options.ts";
import { Admission, readBody } from "./http/admission.ts";
import { HttpError, reply, replyError } from "./http/reply.ts";
import { Doctor } from "./readings/doctor.ts";
import { KeptHistory } from "../view/samples/kept-history.ts";
import { Months } from "../view/samples/month.ts";
import { QueueView } from "../view/samples/queue-view.ts";
import { Readings } from "./readings/readings.ts";
import { Sampler } from "../view/samples/sampler.ts";
import { answer, findRoute } from "./routes.ts";

/** A handler of Fetch API requests, made by {@link dashboard}. */
export interface Dashboard extends AsyncDisposable {
  /** Handles one request. Never rejects: failures become responses with an HTTP status. */
  (request: Request): Promise<Response>;
  /** Ends the event streams of open pages, and closes the connections to Redis. May be called twice. */
  close(): Promise<void>;
}

/** Longer URLs are refused. The page's longest URLs hold a queue's name and a key. */
const MAX_URL = 8192;

/**
 * Creates a dashboard: a web page that shows queues, as one handler `(request: Request) => Promise<Response>`.
 *
 * It transfers no messages and takes none. It connects to Redis when a page first calls it, or at once with
 * `keepHistory`. While at least one page is open and visible, it reads the numbers of all queues every two seconds, once
 * for all pages.
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
  readonly #admission: Admission;
  #running: Running | undefined;
  #closing: Promise<void> | undefined;

  constructor(settings: DashboardSettings) {
    this.#settings = settings;
    this.#admission = new Admission(settings);
    if (settings.keepHistory) this.#run();
  }

  async handle(request: Request): Promise<Response> {
    try {
      return await this.#handle(request);
    } catch (error) {
      if (error instanceof HttpError) return replyError(error.status, error.message);
      // Safe to show: the messages of these errors contain no password and no payload.
      if (error instanceof DelaylineError) return replyError(503, error.message);
      if (!request.signal.aborted) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
      return replyError(
        500,
        "internal error; see the warnings of the process that serves the dashboard",
      );
    }
  }

  async close(): Promise<void> {
    this.#closing ??= this.#end();
    await this.#closing;
  }

  async #handle(request: Request): Promise<Response> {
    if (this.#closing !== undefined) throw new HttpError(503, "the dashboard is closed");
    if (request.url.length > MAX_URL) throw new HttpError(414, "the URL is too long");
    await this.#admission.admit(request);
    const { pathname, searchParams } = new URL(request.url);
    const { basePath } = this.#settings;
    // The page's own URLs are relative, so its path has to end with a slash.
    if (basePath !== "" && pathname === basePath) {
      return reply(null, 308, { location: `${basePath.split("/").at(-1)}/` });
    }
    // Some frameworks strip the base path, others leave it.
    const path = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : pathname;
    if (path.startsWith("/api/")) {
      return await this.#call(path.slice("/api/".length), searchParams, request);
    }
    if (request.method !== "GET" && request.method !== "HEAD") {
      return replyError(405, "only GET and HEAD are allowed", { allow: "GET, HEAD" });
    }
    return replyAsset(path.slice(1), request) ?? replyError(404, "no such page");
  }

  async #call(path: string, query: URLSearchParams, request: Request): Promise<Response> {
    this.#admission.admitCall(request);
    const found = findRoute(path);
    if (found === undefined) throw new HttpError(404, "no such call");
    const { route, queue } = found;
    const { method } = request;
    const handler = method === "GET" || method === "POST" ? route[method] : undefined;
    if (handler === undefined) {
      const allow = Object.keys(route).join(", ");
      return replyError(405, `only ${allow} is allowed`, { allow });
    }
    if (method === "POST") this.#admission.admitChange(request);
    const body = method === "POST" ? await readBody(request) : {};
    return await answer(handler, new ApiCall(this.#run(), { request, queue, query, body }));
  }

  #run(): Running {
    if (this.#running !== undefined) return this.#running;
    const settings = this.#settings;
    const { redis, interop, callTimeout } = settings;
    const inspector = new Inspector({
      ...(redis !== undefined && { redis }),
      ...(interop !== undefined && { interop }),
      ...(callTimeout !== undefined && { callTimeout }),
      // A lost connection also fails the calls, and their errors reach the page.
      onError: () => {},
    });
    const kept = new KeptHistory(inspector, settings.keepHistory);
    const sampler = new Sampler(inspector, kept);
    if (settings.keepHistory) sampler.keep();
    const view = new QueueView(inspector);
    const streams = new EventStreams(sampler, view);
    this.#running = {
      settings,
      inspector,
      sampler,
      kept,
      view,
      streams,
      readings: new Readings(),
      months: new Months(inspector, sampler),
      doctor: new Doctor(redis),
    };
    return this.#running;
  }

  async #end(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    running.streams.close();
    running.sampler.close();
    running.readings.close();
    running.doctor.close();
    await running.inspector.close();
  }
}

/**
 * Replies with the file of the page that is served under this path; undefined if there is none. Browsers may keep the
 * file, but have to revalidate it each time.
 */
function replyAsset(path: string, request: Request): Response | undefined {
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
