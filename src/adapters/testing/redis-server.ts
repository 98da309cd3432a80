import { Redis } from "ioredis";
import { findServer, messageOf, RedisStartError, type ServerBinary } from "./find-server.ts";
import { freePort, ServerProcess } from "./server-process.ts";
import { networkTime } from "../../time/runtime.ts";
import { sleepForNetwork } from "../../time/sleep.ts";

/** How {@link startRedis} starts a server. Has no effect on a server at `REDIS_URL`. */
export interface StartRedisOptions {
  /** Additional arguments for the server, such as `["--appendonly", "yes"]`. They override the defaults. */
  readonly args?: readonly string[];
  /** The port to listen on. If it is taken, the start fails. Defaults to a free port. */
  readonly port?: number;
  /**
   * Where the server keeps its data, if `args` enable persistence. Never removed.
   * Defaults to a temporary directory, which is removed when the server stops.
   */
  readonly directory?: string;
  /**
   * The environment: `REDIS_URL` and `PATH` are looked up here, and the server inherits it.
   * Defaults to `process.env`.
   */
  readonly env?: NodeJS.ProcessEnv;
}

/** A Redis that answers. */
export interface RedisServer extends AsyncDisposable {
  /** Its URL, including the password if `REDIS_URL` has one. */
  readonly url: string;
  /** Its TCP port. */
  readonly port: number;
  /** Its process id, or undefined for a server at `REDIS_URL`. */
  readonly pid: number | undefined;
  /** Its version, such as `7.0.15`. */
  readonly version: string;
  /** Where it comes from. */
  readonly source: "REDIS_URL" | "PATH";
  /** A readable summary in one line, without a password. */
  readonly description: string;
  /**
   * Stops the server and removes its temporary directory. May be called twice.
   *
   * A server at `REDIS_URL` is neither stopped nor flushed.
   */
  stop(): Promise<void>;
}

/** How long a server may take to become ready, in milliseconds: it may have to load data. */
const START_TIMEOUT = 30_000;

/** How long a server at `REDIS_URL` may take to answer, in milliseconds. */
const ANSWER_TIMEOUT = 5_000;

/** How often a server is started again because another process has taken its port. */
const MAX_PORT_RETRIES = 5;

/**
 * Provides a Redis for tests and examples, and resolves once it answers.
 *
 * It uses the first of these:
 * - the server at `REDIS_URL`, as it is;
 * - `redis-server` or `valkey-server` (6.2 or later) on the `PATH`, started for this process on a free
 *   port of 127.0.0.1, without persistence.
 *
 * It installs nothing. If there is neither, the error says how to install a server.
 *
 * A server that it started never outlives this process, not even if the process is killed, and does not keep
 * the process alive.
 *
 * ```ts
 * await using redis = await startRedis();
 * console.log(redis.description);
 * ```
 *
 * @throws {TypeError} if an option is not known.
 * @throws {RedisStartError} `REDIS_NOT_FOUND` if there is no server to start, `REDIS_START_FAILED` if the server does
 *   not become ready, `REDIS_UNREACHABLE` if the server at `REDIS_URL` does not answer.
 */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  checkOptions(options);
  const { env = process.env } = options;
  const url = env["REDIS_URL"] ?? "";
  return url === "" ? await start(await findServer(env), options) : await lent(url);
}

/** Without this check, a misspelt option would start a server on another port, or with other data. */
function checkOptions(options: unknown): void {
  if (typeof options !== "object" || options === null) {
    const got = options === null ? "null" : typeof options;
    throw new TypeError(`startRedis options must be an object, got ${got}`);
  }
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(`startRedis option must be one of ${OPTIONS.join(", ")}, got "${unknown}"`);
}

const OPTIONS: readonly string[] = ["args", "port", "directory", "env"];

/** The server at `REDIS_URL`. */
async function lent(url: string): Promise<RedisServer> {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !/^rediss?:$/.test(parsed.protocol)) {
    throw new RedisStartError(
      "REDIS_UNREACHABLE",
      "REDIS_URL must start with redis:// or rediss:// and name a host",
    );
  }
  const port = Number(parsed.port || 6379);
  const address = `${parsed.hostname}:${port}`;
  try {
    const { name, version } = await probe(url, ANSWER_TIMEOUT);
    return {
      url,
      port,
      pid: undefined,
      version,
      source: "REDIS_URL",
      description: `${name} ${version} at REDIS_URL (${address}), used as it is`,
      stop: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
  } catch (error) {
    // Without `cause`: ioredis's errors carry the arguments of commands, including those of AUTH.
    throw new RedisStartError(
      "REDIS_UNREACHABLE",
      `the Redis at REDIS_URL (${address}) does not answer: ${messageOf(error)}`,
    );
  }
}

/** Starts a server, on another port if another process has taken the first. */
async function start(binary: ServerBinary, options: StartRedisOptions): Promise<RedisServer> {
  for (let retries = 0; ; retries++) {
    const port = options.port ?? (await freePort());
    const url = `redis://127.0.0.1:${port}`;
    const server = await ServerProcess.spawn(binary, (directory) =>
      serverArguments({ port: String(port), dir: options.directory ?? directory }, options.args),
    ).catch((cause: unknown) => {
      const message = `${binary.path} cannot be started: ${messageOf(cause)}`;
      throw new RedisStartError("REDIS_START_FAILED", message, { cause });
    });
    const failure = await ready(server, url);
    if (failure === undefined) return owned(binary, server, port, url);

    const { log } = server;
    await server.stop();
    const isPortTaken = log.includes("Address already in use");
    if (isPortTaken && options.port === undefined && retries < MAX_PORT_RETRIES) continue;
    throw new RedisStartError(
      "REDIS_START_FAILED",
      `${binary.path} on port ${port} ${failure}; the last lines of its log:\n${log}`,
    );
  }
}

/** The server's command-line arguments. The caller's come last, since the last one of a name counts. */
function serverArguments(own: Record<string, string>, extra: readonly string[] = []): string[] {
  const settings = { bind: "127.0.0.1", save: "", appendonly: "no", daemonize: "no", ...own };
  return Object.entries(settings)
    .flatMap(([name, value]) => [`--${name}`, value])
    .concat(extra);
}

/** Waits until the server answers; if it does not, resolves to the reason. */
async function ready(server: ServerProcess, url: string): Promise<string | undefined> {
  const deadline = networkTime.now() + START_TIMEOUT;
  let failure = "";
  while (server.running) {
    try {
      const { processId } = await probe(url, 1_000);
      // Another server may have taken the port, and may answer. The server started here then ends by itself.
      if (processId === server.pid) return undefined;
    } catch (error) {
      failure = messageOf(error);
      // If `args` set a password, the server answers nothing else.
      if (failure.startsWith("NOAUTH")) return undefined;
    }
    if (networkTime.now() > deadline) return `is not ready after ${START_TIMEOUT} ms (${failure})`;
    await sleepForNetwork(5);
  }
  return "ended before it was ready";
}

function owned(
  binary: ServerBinary,
  server: ServerProcess,
  port: number,
  url: string,
): RedisServer {
  const { program, version } = binary;
  return {
    url,
    port,
    pid: server.pid,
    version,
    source: "PATH",
    description: `${program} ${version} from PATH on 127.0.0.1:${port}, started for this run`,
    stop: () => server.stop(),
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** A server's report about itself. */
interface ServerInfo {
  /** `redis` or `valkey`. */
  readonly name: string;
  /** Its version, such as `7.0.15`. */
  readonly version: string;
  /** Its process id, on its own machine. */
  readonly processId: number;
}

/**
 * Asks a server once for its name and version.
 *
 * @param timeout how long connecting may take, and then the answer, in milliseconds.
 * @throws {Error} if the server does not answer, is still loading its data, or refuses.
 */
async function probe(url: string, timeout: number): Promise<ServerInfo> {
  const client = new Redis(url, {
    lazyConnect: true,
    retryStrategy: () => null,
    enableReadyCheck: false,
    connectTimeout: timeout,
    commandTimeout: timeout,
    // Otherwise ioredis waits even for connections that have already ended, which keeps the process alive.
    disconnectTimeout: 0,
  });
  // The event says why a connection failed. The calls below only report that it is closed.
  let failure: Error | undefined;
  client.on("error", (error) => (failure ??= error));
  try {
    await client.connect();
    await client.ping();
    return parseInfo(await client.info("server"));
  } catch (error) {
    throw failure ?? error;
  } finally {
    client.disconnect();
  }
}

function parseInfo(info: string): ServerInfo {
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:(.*)\r?$`, "m").exec(info)?.[1]?.trim();
  return {
    name: field("server_name") ?? "redis",
    // Valkey's redis_version is the version of Redis that it is compatible with.
    version: field("valkey_version") ?? field("redis_version") ?? "of unknown version",
    processId: Number(field("process_id")),
  };
}
