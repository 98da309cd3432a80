import type { DelaylineOptions } from "../../index.ts";
import { checkClientOptions, checks } from "../../inside.ts";

/** Options of {@link dashboard}. */
export interface DashboardOptions {
  /**
   * Where Redis is, or a list of servers, as in the options of a `Delayline`. Defaults to `"redis://localhost:6379"`.
   */
  readonly redis?: DelaylineOptions["redis"];

  /**
   * The layout in which the dashboard changes messages. Use the value of the `Delayline` that owns the queues.
   * Defaults to `"none"`.
   */
  readonly interop?: DelaylineOptions["interop"];

  /** How long a call to Redis may take, in milliseconds, as in the options of a `Delayline`. Defaults to 5,000. */
  readonly callTimeout?: number;

  /**
   * Whether the dashboard refuses changes. `false` lets everyone who can open it cancel, reschedule, revoke, redrive, remove,
   * requeue, pause and resume. Defaults to `true`.
   */
  readonly readOnly?: boolean;

  /**
   * Whether the dashboard shows payloads. It sends them only on request, and the page shows them as text. Payloads
   * may hold personal data: with `true`, protect the dashboard as you protect the data. Defaults to `false`.
   */
  readonly payloads?: boolean;

  /**
   * Whether the dashboard writes the numbers of the queues to Redis once a minute, so that its lines show a day and 90 days,
   * whoever opens the page and after restarts. All dashboards of a Redis share them; one that does not write them shows them,
   * too. It takes some 13 kB of memory per queue, and two short scripts per queue and minute, also while no page is open.
   * Defaults to `true` if `readOnly` is `false`, else to `false`.
   */
  readonly keepHistory?: boolean;

  /**
   * Decides whether to serve a request. Called for every request; event streams end after ten minutes, so an open page
   * asks again. Give `() => true` if your application has already checked the request.
   *
   * Without `authorize` the dashboard serves only requests from this machine that use a loopback name (`localhost`,
   * `127.0.0.1`, `[::1]`) and that no proxy has forwarded. Only `nodeHandler` knows the client's address, so a
   * framework with the Fetch API needs `authorize`. Defaults to none.
   */
  readonly authorize?: (request: Request) => boolean | Promise<boolean>;

  /**
   * The path at which the dashboard is mounted, such as `"/queues"`, if the framework leaves it in the URL. Fastify and
   * Hono leave it; Express and Nest strip it. Defaults to `"/"`.
   */
  readonly basePath?: string;
}

/** Options of {@link serveDashboard}. */
export interface ServeOptions extends DashboardOptions {
  /**
   * The address to listen on. Every address except loopback needs `authorize`, and a proxy in front that speaks TLS.
   * Defaults to `"127.0.0.1"`.
   */
  readonly host?: string;
  /** The port. Defaults to 0, which picks a free port. */
  readonly port?: number;
}

/** The options, complete and checked. */
export type DashboardSettings = Required<Omit<DashboardOptions, Optional>> &
  Pick<DashboardOptions, Optional>;

type Optional = "authorize" | "redis" | "interop" | "callTimeout";

const NAMES = [
  "redis",
  "interop",
  "callTimeout",
  "readOnly",
  "payloads",
  "keepHistory",
  "authorize",
  "basePath",
];

/**
 * Checks the options of a dashboard and adds the defaults.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal.
 */
export function dashboardSettings(options: DashboardOptions = {}): DashboardSettings {
  checks.checkOptions("dashboard option", options, NAMES);
  const { redis, readOnly = true, payloads = false, authorize, basePath = "/" } = options;
  const { interop, callTimeout, keepHistory = !readOnly } = options;
  checkClientOptions({
    ...(callTimeout !== undefined && { callTimeout }),
    ...(interop !== undefined && { interop }),
  });
  checkBoolean("readOnly", readOnly);
  checkBoolean("payloads", payloads);
  checkBoolean("keepHistory", keepHistory);
  if (authorize !== undefined) checks.checkFunction("authorize", authorize);
  checkText("basePath", basePath, (text) => text.startsWith("/"), 'that begins with "/"');
  return {
    ...(redis !== undefined && { redis }),
    ...(interop !== undefined && { interop }),
    ...(callTimeout !== undefined && { callTimeout }),
    readOnly,
    payloads,
    keepHistory,
    ...(authorize && { authorize }),
    basePath: basePath.replace(/\/+$/, ""),
  };
}

/**
 * Checks the options of a served dashboard and adds the defaults.
 *
 * @throws {TypeError | RangeError} naming the option, the rule and the value, if an option is not legal.
 */
export function serveSettings(options: ServeOptions = {}): {
  readonly host: string;
  readonly port: number;
  readonly dashboard: DashboardOptions;
} {
  checks.checkOptions("dashboard option", options, [...NAMES, "host", "port"]);
  const { host = "127.0.0.1", port = 0, ...dashboard } = options;
  checkText("host", host, (text) => text !== "", "that is not empty");
  checks.checkWhole("port", port, 0, 65_535);
  return { host, port, dashboard };
}

function checkBoolean(name: string, value: unknown): void {
  if (typeof value !== "boolean") {
    throw new TypeError(`${name} must be a boolean, got ${typeof value}`);
  }
}

function checkText(
  name: string,
  value: unknown,
  isLegal: (text: string) => boolean,
  rule: string,
): void {
  if (typeof value === "string" && isLegal(value)) return;
  const got = typeof value === "string" ? `"${value}"` : typeof value;
  throw new TypeError(`${name} must be a string ${rule}, got ${got}`);
}
