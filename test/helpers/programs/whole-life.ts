import { setTimeout } from "node:timers/promises";
import { tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

// Offers, takes and subscribes, and closes the client. The process then has to end by itself.
const [redis = "", name = ""] = process.argv.slice(2);
const line = new Delayline({ redis });
const delayed = line.getDelayedQueue<string>(name);
const ready = line.getBlockingQueue<string>(name);
await delayed.offer("a", 5);
const taken = [await ready.take()];
ready.subscribe((payload) => taken.push(payload));
await delayed.offerMany([
  { payload: "b", delay: 5 },
  { payload: "in an hour", delay: 3_600_000 },
]);
while (taken.length < 2) await setTimeout(5);
await line.close();
await tell(taken);
