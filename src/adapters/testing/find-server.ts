import { execFile } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { basename, delimiter, join } from "node:path";
import { promisify } from "node:util";

/**
 * Finds a server on the PATH that can be started.
 *
 * @throws {RedisStartError} `REDIS_NOT_FOUND`, listing everything that was tried and what to install.
 */
export async function findServer(env: NodeJS.ProcessEnv): Promise<ServerBinary> {
  const remarks = ["REDIS_URL is not set"];

  for (const program of ["redis-server", "valkey-server"]) {
    const paths = findExecutables(program, env);
    if (paths.length === 0) remarks.push(`${program} is not on PATH`);
    for (const path of paths) {
      try {
        return await inspectBinary(path, env);
      } catch (error) {
        remarks.push(messageOf(error));
      }
    }
  }

  throw new RedisStartError(
    "REDIS_NOT_FOUND",
    `There is no Redis:
${remarks.map((remark) => `  - ${remark}`).join("\n")}
Install one:
  Debian, Ubuntu   sudo apt-get install redis-server
  macOS            brew install redis
or run one, and set its address:
  docker run --rm -p 6379:6379 redis:8
  export REDIS_URL=redis://127.0.0.1:6379`,
  );
}

/** A redis-server or valkey-server that can be started. */
export interface ServerBinary {
  /** The executable's absolute path. */
  readonly path: string;
  /** `redis-server` or `valkey-server`. */
  readonly program: string;
  /** Its version, such as `7.0.15`. */
  readonly version: string;
  /** The environment in which it runs. */
  readonly env: NodeJS.ProcessEnv;
}

/** The oldest supported version. */
const MIN_VERSION = [6, 2] as const;

/**
 * Asks an executable for its version, which also shows that it finds its shared libraries.
 *
 * @throws {Error} with a one-line reason, if it does not run or is older than 6.2.
 */
async function inspectBinary(path: string, env: NodeJS.ProcessEnv): Promise<ServerBinary> {
  // "Redis server v=7.0.15 sha=00000000:0 ...", "Valkey server v=8.0.1 sha=..."
  const { stdout } = await promisify(execFile)(path, ["--version"], { env, timeout: 10_000 }).catch(
    (cause: Error) => {
      throw new Error(`${path} does not run: ${cause.message.trim()}`, { cause });
    },
  );
  const version = /v=(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${path} does not print its version`);
  if (!isRecentEnough(version)) {
    throw new Error(
      `${path} is version ${version}, but ${MIN_VERSION.join(".")} or later is needed`,
    );
  }
  return { path, program: basename(path), version, env };
}

function isRecentEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > MIN_VERSION[0] || (major === MIN_VERSION[0] && minor >= MIN_VERSION[1]);
}

/** The executable files of this name on the PATH of `env`, in the order a shell would try them. */
export function findExecutables(name: string, env: NodeJS.ProcessEnv): string[] {
  return (env["PATH"] ?? "")
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => join(directory, name))
    .filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The stable codes of {@link RedisStartError}. */
export type RedisStartErrorCode =
  /** `REDIS_URL` is not set, and there is no server to start. The message says what to install. */
  | "REDIS_NOT_FOUND"
  /** A server was started but did not become ready. The message ends with its last log lines. */
  | "REDIS_START_FAILED"
  /** `REDIS_URL` is not a Redis URL, or the server there does not answer. */
  | "REDIS_UNREACHABLE";

/** `startRedis` could not provide a Redis. Its message contains no password. */
export class RedisStartError extends Error {
  override readonly name = "RedisStartError";

  /** A stable name for programs to compare with; messages may be reworded, codes are not. */
  readonly code: RedisStartErrorCode;

  constructor(code: RedisStartErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
