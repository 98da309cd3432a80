import type { Child } from "../../../scripts/child/child.ts";
import { startChild } from "../../helpers/child.ts";
import { eventually } from "../../helpers/eventually.ts";
import { bundle } from "../../helpers/bundle.ts";
import type { SiteWorkerNote, SiteWorkerTask } from "../workers/site-worker.ts";
import { CONCURRENCY, SETTINGS, type SiteTraffic } from "./site-traffic.ts";
import type { Site } from "./site.ts";

/** Returns a process that has loaded and waits for its task. */
export type NewWorker = () => Promise<Child>;

/** Starts two processes ahead, and others when they are asked for. */
export async function newWorkers(): Promise<NewWorker> {
  // A bundle loads faster.
  const program = await bundle(new URL("../workers/site-worker.ts", import.meta.url));
  const start = () => startChild(program);
  const spares = [start(), start()];
  return async () => {
    const worker = spares.shift() ?? start();
    await worker.next((word) => word === "loaded");
    return worker;
  };
}

/** Adds a process beside the others, and kills it while it holds messages. */
export async function killWorkerOf(
  traffic: SiteTraffic,
  site: Site,
  newWorker: NewWorker,
): Promise<void> {
  const worker = await newWorker();
  const { kind, name, abroad } = traffic;
  abroad.clear();
  // Short, so that the messages of the killed process are back soon.
  const settings = { ...SETTINGS, leaseTimeout: 1000, partitions: site.partitions };
  const { address } = site;
  const own =
    kind === "plain" ? { codec: settings.codec, partitions: settings.partitions } : settings;
  const task: SiteWorkerTask = { address, name, kind, concurrency: CONCURRENCY, settings: own };
  await worker.send(task);
  let count = 0;
  const listening = (async () => {
    for (;;) {
      const [n, what, attempt] = (await worker.next(Array.isArray, 20_000)) as SiteWorkerNote;
      traffic.note(n, what, attempt);
      count++;
    }
  })().catch(() => {});
  await eventually(() => count > 20 && abroad.size > 2, {
    within: 20_000,
    what: `a process has ${kind} messages in its hands`,
  });
  await worker.kill("SIGKILL");
  await listening;
}
