/**
 * A program that starts a Redis, sends its pid and port, and then ends as its argument says. It never calls `stop`.
 */
import { hangUp, tell } from "../../../scripts/child/parent.ts";
import { startRedis } from "../../../src/adapters/testing/index.ts";

const { pid, port } = await startRedis();
await tell({ pid, port });

const end = process.argv[2];
if (end === "throw") {
  setImmediate(() => {
    throw new Error("nobody catches this");
  });
}
if (end === "exit") setImmediate(() => process.exit(3));
// Only the Redis is left then. It must not keep the process alive.
if (end === "return") hangUp();
// "wait": the open IPC channel keeps the process alive until somebody kills it.
if (end === "wait") process.on("message", () => {});
