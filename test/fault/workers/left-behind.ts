/**
 * A program that uses a client in every way, closes it, and reports what still keeps the process alive half a second
 * later.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { hangUp, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

const { REDIS = "", QUEUE = "" } = process.env;
const line = new Delayline({ redis: REDIS });
const delayed = line.getDelayedQueue<string>(QUEUE);
const ready = line.getBlockingQueue<string>(QUEUE);
const controller = new AbortController();

await delayed.offer("message", 0);
await ready.take();
await delayed.offer("later", 60_000);
const take = ready.take({ signal: controller.signal }).catch(() => {});
const subscription = ready.subscribe(() => {});
await ready.poll(5);
controller.abort();
await take;
await subscription.close();
await ready.poll(5);
await line.close();

// The sockets are still closing. This sleep has ended when the test looks at the rest.
await sleep(500);
await tell(process.getActiveResourcesInfo().filter((kind) => /Timeout|Immediate|TCP/.test(kind)));
hangUp();
