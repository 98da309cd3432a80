import { peerOf } from "./node-handler.ts";
import { HttpError } from "./reply.ts";
import { networkTime } from "../../../inside.ts";

/** The rules of an admission; see the options of a dashboard. */
interface AdmissionRules {
  readonly authorize?: (request: Request) => boolean | Promise<boolean>;
  readonly readOnly: boolean;
}

/** Decides which requests are served, and which may change something. */
export class Admission {
  readonly #rules: AdmissionRules;
  /** No further warning before this time (`networkTime.now()`). */
  #quietUntil = -Infinity;

  constructor(rules: AdmissionRules) {
    this.#rules = rules;
  }

  /**
   * Admits a request of any kind: by `authorize` if it is set. Otherwise the request has to come from this machine, not
   * through a proxy, and under a loopback name.
   *
   * The name matters because of DNS rebinding: a foreign page can point its own host name at 127.0.0.1, and the browser
   * then sends that name.
   *
   * @throws {HttpError} 403 if the request is refused.
   */
  async admit(request: Request): Promise<void> {
    const { authorize } = this.#rules;
    if (authorize !== undefined) {
      if (!(await this.#isAuthorized(authorize, request)))
        throw new HttpError(403, "not authorized");
      return;
    }
    const peer = peerOf(request);
    if (peer === undefined) {
      throw new HttpError(
        403,
        `the client's address is unknown, because the request did not come through nodeHandler: ${UNSET}`,
      );
    }
    if (!isLoopback(peer)) throw new HttpError(403, `only this machine is served: ${UNSET}`);
    for (const name of request.headers.keys()) {
      if (name === "forwarded" || name === "via" || name.startsWith("x-forwarded-")) {
        throw new HttpError(403, `a proxy forwarded the request for an unknown client: ${UNSET}`);
      }
    }
    if (!isLoopback(new URL(request.url).hostname) || !isLoopback(hostnameOf(request))) {
      throw new HttpError(
        403,
        `only the names localhost, 127.0.0.1 and [::1] are served: ${UNSET}`,
      );
    }
  }

  /**
   * Admits a call of the API. The call has to come from the dashboard's own page. A page of another site could not read
   * the reply, but would make this process work.
   *
   * @throws {HttpError} 403 if the browser says that another site made the request.
   */
  admitCall(request: Request): void {
    const site = request.headers.get("sec-fetch-site") ?? "none";
    if (site === "cross-site" || site === "same-site") {
      throw new HttpError(403, "only the dashboard's own page may call the API");
    }
  }

  /**
   * Admits a change. It has to come from the dashboard's own page: forms, links and images of other sites cannot set
   * the header and the content type, and a script of another site needs a CORS preflight, which always fails.
   *
   * @throws {HttpError} 403 or 415 if the request is refused.
   */
  admitChange(request: Request): void {
    if (this.#rules.readOnly) {
      throw new HttpError(403, "the dashboard is read-only: the option readOnly is not false");
    }
    if (!isSameOrigin(request)) {
      throw new HttpError(403, "a change has to come from the dashboard's own origin");
    }
    if (request.headers.get("x-delayline") !== "change") {
      throw new HttpError(403, "a change needs the header x-delayline: change");
    }
    const [type = ""] = (request.headers.get("content-type") ?? "").split(";");
    if (type.trim().toLowerCase() !== "application/json") {
      throw new HttpError(415, "a change needs the content type application/json");
    }
  }

  /** Passes a copy without the body: a body can be read only once. */
  async #isAuthorized(
    authorize: NonNullable<AdmissionRules["authorize"]>,
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

  /**
   * Anyone can make `authorize` fail as often as they like, and its error may quote what they sent. So warnings are
   * limited, and their text is fixed.
   */
  #warn(cause: unknown): void {
    const now = networkTime.now();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + WARNING_INTERVAL;
    process.emitWarning(
      new Error("authorize of the dashboard failed; the request was refused", { cause }),
    );
  }
}

const UNSET = "the option authorize is not set";

/** The shortest time between two warnings (ms). */
const WARNING_INTERVAL = 60_000;

/** The host name that the client asked for. */
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
 * Browsers send `Sec-Fetch-Site` for pages that are secure or local. For others compare the origin. A request with
 * neither header does not come from a page.
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

/** Whether a host name or an address always means this machine. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name.endsWith(".localhost") || name === "::1") return true;
  const address = name.replace(/^::ffff:/, "");
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);
}

/** Ample: a change holds only a message id and a delay. */
const MAX_BYTES = 16_384;

/** How long a body may take to arrive (ms). */
const TIMEOUT = 10_000;

/**
 * Reads a request's body, a JSON object, within `timeout` milliseconds.
 *
 * @throws {HttpError} 400 if it is not a JSON object, 408 if it takes too long, 413 if it is too large.
 */
export async function readBody(
  request: Request,
  timeout = TIMEOUT,
): Promise<Readonly<Record<string, unknown>>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new HttpError(408, `the body has to arrive within ${timeout / 1000} s`);
    timer = networkTime.setTimeout(() => reject(error), timeout);
  });
  try {
    return parse(await readText(request, late));
  } finally {
    networkTime.clearTimeout(timer);
  }
}

async function readText({ body }: Request, late: Promise<never>): Promise<string> {
  let text = "";
  let size = 0;
  const decoder = new TextDecoder();
  const reader = body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    for (;;) {
      const { value } = (await Promise.race([reader?.read(), late])) ?? {};
      if (value === undefined) return text + decoder.decode();
      size += value.length;
      if (size > MAX_BYTES)
        throw new HttpError(413, `the body may have at most ${MAX_BYTES} bytes`);
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    void reader?.cancel().catch(() => {});
    throw error;
  }
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Readonly<Record<string, unknown>>;
    }
  } catch {
    // The error below is enough: a SyntaxError would quote the body.
  }
  throw new HttpError(400, "the body has to be a JSON object");
}
