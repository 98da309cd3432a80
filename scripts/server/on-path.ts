import { delimiter } from "node:path";
import { findServer } from "../../src/testing/find-server.ts";
import { packagedServer } from "./package-cache.ts";

/**
 * Sees to it that `startRedis` finds a server to start, here and in every program that is started from
 * here: where PATH leads to none, the distribution's package is fetched, and put there.
 *
 * @throws {Error} that says what to install, if there is none and none can be fetched.
 */
export async function putServerOnPath(): Promise<void> {
  process.env["PATH"] = await pathToServer(process.env);
}

/** The PATH of `env`; if no server is on it, with one from the distribution's package in front. */
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
