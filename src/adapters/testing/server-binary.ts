import { execFile } from "node:child_process";
import { basename } from "node:path";
import { promisify } from "node:util";

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
export async function inspectBinary(path: string, env: NodeJS.ProcessEnv): Promise<ServerBinary> {
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
