import type { DashboardSettings } from "./options.ts";
import { HttpError } from "./http-error.ts";
import { peerOf } from "./peer.ts";

/** Decides who is served, and what may be changed. */
export class Guard {
  readonly #settings: Pick<DashboardSettings, "authorize" | "readOnly">;
  /** Until then nobody is warned again. */
  #quietUntil = -Infinity;

  constructor(settings: Pick<DashboardSettings, "authorize" | "readOnly">) {
    this.#settings = settings;
  }

  /**
   * Without `authorize` only this machine is served, under a loopback name: who asks has to be known, and to be no proxy. The
   * name is what keeps a page of somebody else
   * away whose name was made to lead here (DNS rebinding): the browser then says that name.
   *
   * @throws {HttpError} if the request is not served.
   */
  async admit(request: Request): Promise<void> {
    const { authorize } = this.#settings;
    if (authorize !== undefined) {
      if (!(await this.#asks(authorize, request))) throw new HttpError(403, "not authorized");
      return;
    }
    const peer = peerOf(request);
    if (peer === undefined) {
      throw new HttpError(
        403,
        "who asks is not known, since the request did not come through nodeHandler: the option authorize is not set",
      );
    }
    if (!isLoopback(peer)) {
      throw new HttpError(403, "only this machine is served: the option authorize is not set");
    }
    for (const name of request.headers.keys()) {
      if (name === "forwarded" || name === "via" || name.startsWith("x-forwarded-")) {
        throw new HttpError(
          403,
          "a proxy has passed this on, for whom is not known: the option authorize is not set",
        );
      }
    }
    if (!isLoopback(new URL(request.url).hostname) || !isLoopback(hostnameOf(request))) {
      throw new HttpError(
        403,
        "only the names localhost, 127.0.0.1 and [::1] are served: the option authorize is not set",
      );
    }
  }

  /** It sees a copy without the body, which only one can read. */
  async #asks(
    authorize: NonNullable<DashboardSettings["authorize"]>,
    request: Request,
  ): Promise<boolean> {
    const { url, method, headers, signal } = request;
    try {
      const verdict: unknown = await authorize(new Request(url, { method, headers, signal }));
      return verdict === true;
    } catch (error) {
      this.#warn(error);
      return false;
    }
  }

  /** Anybody may ask as often as they like, and what it fails with may hold what they sent: the text is ours. */
  #warn(cause: unknown): void {
    const now = performance.now();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + QUIET;
    process.emitWarning(
      new Error("authorize of the dashboard has failed; nobody is served then", { cause }),
    );
  }

  /**
   * Only the dashboard's own page has something to ask: another site could not read the reply, but make us work.
   *
   * @throws {HttpError} if a browser says that another site asks.
   */
  admitCall(request: Request): void {
    const site = request.headers.get("sec-fetch-site") ?? "none";
    if (site === "cross-site" || site === "same-site") {
      throw new HttpError(403, "another site asks: only the dashboard's own page may");
    }
  }

  /**
   * A change comes from a page of this dashboard. A form, a link or an image of another site cannot set the header and the
   * content type; a script of another site would have to ask first, and is never allowed to.
   *
   * @throws {HttpError} if it does not.
   */
  admitChange(request: Request): void {
    if (this.#settings.readOnly) {
      throw new HttpError(403, "the dashboard is read-only: the option readOnly is not false");
    }
    if (!isSameOrigin(request)) throw new HttpError(403, "a change has to come from this origin");
    if (request.headers.get("x-delayline") !== "change") {
      throw new HttpError(403, "a change needs the header x-delayline: change");
    }
    const [type = ""] = (request.headers.get("content-type") ?? "").split(";");
    if (type.trim().toLowerCase() !== "application/json") {
      throw new HttpError(415, "a change needs the content type application/json");
    }
  }
}

/** Between two warnings (ms). */
const QUIET = 60_000;

/** Whether a name or an address leads to this machine and to no other. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  const address = name.replace(/^::ffff:/, "");
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);
}

/** The name that the browser connected to. */
function hostnameOf(request: Request): string {
  const host = request.headers.get("host");
  if (host === null) return new URL(request.url).hostname;
  try {
    return new URL(`http://${host}`).hostname;
  } catch {
    return "";
  }
}

/**
 * Browsers say it themselves where the page is secure or local. Elsewhere the origin is compared. A request that says
 * neither comes from no page.
 */
function isSameOrigin(request: Request): boolean {
  const site = request.headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const origin = request.headers.get("origin");
  if (origin === null) return false;
  try {
    const { host } = new URL(request.url);
    return new URL(origin).host === (request.headers.get("host") ?? host);
  } catch {
    return false;
  }
}
