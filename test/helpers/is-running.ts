import { readFileSync } from "node:fs";

/** Whether a process with this id is running. A zombie does not count. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // "1234 (redis-server) S ...": the state follows the name.
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    // The process has just ended, or this system has no /proc; then signal 0 has to do.
    return process.platform !== "linux";
  }
}
