/**
 * A process that handles messages of a queue in partitions, and is killed while it does. It loads, says "loaded",
 * begins when it hears its task, and reports its work: `[n, "start" | "done", attempt]`.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent, tell } from "../../../scripts/child/parent.ts";
import { Delayline, type Delivery } from "../../../src/index.ts";
import { redisAt, type SiteAddress } from "../partitions/site-address.ts";

/** The task of the worker. */
export interface SiteWorkerTask {
  readonly address: SiteAddress;
  readonly name: string;
  readonly kind: "plain" | "reliable";
  readonly concurrency: number;
  /** Options of the queue. */
  readonly settings: { readonly codec: "string"; readonly partitions: number };
}

/** What the worker reports about a message. */
export type SiteWorkerNote = [n: number, what: "start" | "done", attempt: number];

endWithParent();
async function handle(payload: string, delivery?: Delivery<string>): Promise<void> {
  const n = Number(payload.slice(1, -1));
  const attempt = delivery?.attempt ?? 1;
  void tell([n, "start", attempt]);
  // Longer than a message takes to arrive, so that the worker always holds one.
  await sleep(200);
  void tell([n, "done", attempt]);
}

process.on("message", ({ address, name, kind, settings, concurrency }: SiteWorkerTask) => {
  const line = new Delayline({ redis: redisAt(address).redis });
  line.on("error", () => {});
  if (kind === "plain") {
    line
      .getBlockingQueue<string>(name, settings)
      .subscribe((payload) => handle(payload), { concurrency });
  } else {
    line.getReliableQueue<string>(name, settings).subscribe(handle, { concurrency });
  }
});
void tell("loaded");
