import { delimiter } from "node:path";
import { findServer } from "../../src/adapters/testing/find-server.ts";
import { packagedServer } from "./package-cache.ts";

/**
 * Makes sure that `startRedis` finds a server, in this process and in those that it starts. If PATH has none, the
 * distribution's package is fetched and put there.
 *
 * @throws {Error} that says what to install, if PATH has none and none can be fetched.
 */
export async function putServerOnPath(): Promise<void> {
  process.env["PATH"] = await pathToServer(process.env);
}

/** The PATH of `env`, preceded by a server of the distribution's package if there is none on it. */
export async function pathToServer(env: NodeJS.ProcessEnv): Promise<string> {
  const path = env["PATH"] ?? "";
  const missing = await findServer(env).then(
    () => undefined,
    (error: unknown) => messageOf(error),
  );
  if (missing === undefined) return path;
  try {
    return [await packagedServer(env), path].join(delimiter);
  } catch (cause) {
    throw new Error(`${messageOf(cause)}\n${missing}`, { cause });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
