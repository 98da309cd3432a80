import { checkOptions, checkWhole } from "../../queue/checks.ts";
import { clientSettings, queueSettings, type DelaylineOptions } from "../../queue/options.ts";

/** Options of a dashboard. */
export interface DashboardOptions {
  /** Where Redis is, or a list of servers, as in the options of a `Delayline`. Defaults to `"redis://localhost:6379"`. */
  readonly redis?: DelaylineOptions["redis"];

  /** As in the options of the `Delayline` that uses the queues: its messages are changed so. Defaults to `"none"`. */
  readonly interop?: DelaylineOptions["interop"];

  /** How long a call to Redis may take (ms), as in the options of a `Delayline`. Defaults to 5,000. */
  readonly callTimeout?: number;

  /**
   * Whether it only shows. `false` lets everybody who sees it cancel, reschedule, redrive, remove, pause and resume.
   * Defaults to `true`.
   */
  readonly readOnly?: boolean;

  /**
   * Whether payloads can be looked at. They are sent only to who asks for one, and are shown as text; but personal data may
   * be in them, so that the dashboard needs the same care as the data themselves. Defaults to `false`.
   */
  readonly payloads?: boolean;

  /**
   * Decides whether a request is served; it is asked at each. A stream of events ends after ten minutes, so that it is
   * asked again. Without it only requests from this machine to a loopback name (`localhost`, `127.0.0.1`, `[::1]`) are
   * served, and none that a proxy has passed on. Where a request comes from only `nodeHandler` knows: a framework with the
   * Fetch API needs `authorize`. `() => true` is for an application that has asked already. By default there is none.
   */
  readonly authorize?: (request: Request) => boolean | Promise<boolean>;

  /**
   * The path at which it is mounted, as in `"/queues"`, where the framework does not take it off the URL. Express and Nest
   * do, Fastify and Hono do not. Defaults to `"/"`.
   */
  readonly basePath?: string;
}

/** Options of {@link serveDashboard}. */
export interface ServeOptions extends DashboardOptions {
  /**
   * The address to listen on. Any that is not of the loopback needs `authorize`, and a proxy in front that speaks TLS.
   * Defaults to `"127.0.0.1"`.
   */
  readonly host?: string;
  /** The port; 0 takes one that is free. Defaults to 0. */
  readonly port?: number;
}

/** The options, complete and checked. */
export type DashboardSettings = Required<Omit<DashboardOptions, Optional>> &
  Pick<DashboardOptions, Optional>;

type Optional = "authorize" | "redis" | "interop" | "callTimeout";

const NAMES = ["redis", "interop", "callTimeout", "readOnly", "payloads", "authorize", "basePath"];

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function dashboardSettings(options: DashboardOptions = {}): DashboardSettings {
  checkOptions("dashboard option", options, NAMES);
  const { redis, readOnly = true, payloads = false, authorize, basePath = "/" } = options;
  const { interop, callTimeout } = options;
  clientSettings({ ...(callTimeout !== undefined && { callTimeout }) });
  queueSettings({}, { ...(interop !== undefined && { interop }) });
  checkBoolean("readOnly", readOnly);
  checkBoolean("payloads", payloads);
  if (authorize !== undefined && typeof authorize !== "function") {
    throw new TypeError(`authorize must be a function, got ${typeof authorize}`);
  }
  checkText("basePath", basePath, (text) => text.startsWith("/"), 'that begins with "/"');
  return {
    ...(redis !== undefined && { redis }),
    ...(interop !== undefined && { interop }),
    ...(callTimeout !== undefined && { callTimeout }),
    readOnly,
    payloads,
    ...(authorize && { authorize }),
    basePath: basePath.replace(/\/+$/, ""),
  };
}

/** @throws {TypeError | RangeError} naming the option, the rule and the value, if one is not legal. */
export function serveSettings(options: ServeOptions = {}): {
  readonly host: string;
  readonly port: number;
  readonly dashboard: DashboardOptions;
} {
  checkOptions("dashboard option", options, [...NAMES, "host", "port"]);
  const { host = "127.0.0.1", port = 0, ...dashboard } = options;
  checkText("host", host, (text) => text !== "", "that is not empty");
  checkWhole("port", port, 0, 65_535);
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
