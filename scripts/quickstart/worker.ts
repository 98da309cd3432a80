/** Takes orders until it is told to stop, and reports when Redis says that each was taken. */
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
    // Redis is asked after the order has arrived. So the answer can be before the deadline only if
    // the order came too early, and never because of an inaccurate clock.
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
// Takes nothing more, and waits for the handlers that run. Our own client stays open for them.
await line.close();
redis.disconnect();
await tell(taken);
hangUp();
