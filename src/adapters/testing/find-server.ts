import { findExecutables } from "./executable.ts";
import { inspectBinary } from "./server-binary.ts";
import type { ServerBinary } from "./server-binary.ts";
import { messageOf } from "./message-of.ts";
import { RedisStartError } from "./start-error.ts";

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
