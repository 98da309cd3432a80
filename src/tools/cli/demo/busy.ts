import { availableParallelism, loadavg } from "node:os";

/**
 * What to say beside a figure that a busy machine has made worse: its load of the last minute is above its cores. Nothing if
 * it is not busy, or the system does not tell (on Windows the load is 0).
 */
export function busyNote([load = 0] = loadavg(), cores = availableParallelism()): string[] {
  if (load <= cores) return [];
  return [
    `This machine is busy: a load of ${load.toFixed(1)} on ${cores} cores. The latenesses here are its, too.`,
  ];
}
