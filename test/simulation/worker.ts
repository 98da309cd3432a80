/**
 * Simulates what its parent asks for, run after run. Started by `workers.ts`.
 */
import { Simulator } from "./machine/simulate.ts";
import { worldNamed } from "./worlds/all.ts";
import type { Job } from "./workers.ts";

const simulator = new Simulator();
let last: Promise<unknown> = Promise.resolve();

process.on("message", (job: Job) => {
  last = last.then(async () => {
    process.send?.(await simulator.run(worldNamed(job.world), job.seed, job.reduction));
  });
});

process.once("disconnect", () => {
  void last.then(() => simulator.stop()).then(() => process.exit());
});
