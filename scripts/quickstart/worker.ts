/** Takes orders until it is told to stop, and reports when each was taken, by Redis's clock. */
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { Redis } from "ioredis";
import { endWithParent, hangUp, tell } from "../child/parent.ts";
import type { OrderEvent } from "./ledger.ts";

endWithParent();
const { REDIS_URL = "", QUEUE = "" } = process.env;

const redis = new Redis(REDIS_URL);
const line = new Delayline({ redis });
const taken: OrderEvent[] = [];

line.getBlockingQueue<{ order: number }>(QUEUE).subscribe(
  async ({ order }) => {
    // Redis is asked for the time after the order has arrived. So a time before the deadline proves that the order came
    // too early; no inaccurate clock can cause it.
    const [seconds, microseconds] = await redis.time();
    taken.push([order, Number(seconds) * 1000 + Number(microseconds) / 1000]);
  },
  { concurrency: 10 },
);

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
await redis.time();
await tell("ready");

while (!stop.signal.aborted) {
  await sleep(100);
  if (taken.length > 0) await tell(taken.splice(0));
}
// Stop taking, and wait for the running handlers, which still use our own Redis client.
await line.close();
redis.disconnect();
await tell(taken);
hangUp();
