import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** How a program has ended. */
export interface Ended {
  readonly code: number | null;
  /** Whether it was ended since its time was over, or `onLine` had seen enough. */
  readonly wasStopped: boolean;
  readonly seconds: number;
}

/**
 * Runs a program of this project in `folder` for `limit` milliseconds at most. Calls `onLine` with each line that it
 * prints; if that returns true, the program is ended. Nothing that it has started is left running.
 */
export async function runProgram(
  folder: string,
  [program, ...args]: readonly [string, ...string[]],
  limit: number,
  onLine: (line: string) => boolean | void,
): Promise<Ended> {
  const startedAt = performance.now();
  // A group of its own, so that its workers end with it.
  const child = spawn(program, args, {
    cwd: folder,
    detached: true,
    env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let wasStopped = false;
  const stop = () => {
    wasStopped = true;
    end(child.pid);
  };
  const timer = setTimeout(stop, limit);
  process.once("exit", stop);
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on("line", (line) => {
      if (onLine(line) === true) stop();
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  process.off("exit", stop);
  return { code, wasStopped, seconds: (performance.now() - startedAt) / 1000 };
}

function end(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
