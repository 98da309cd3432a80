/** A program that listens to no `error` event while plenty goes wrong. It takes one message, closes and returns. */
import { hangUp, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";

const { REDIS = "", QUEUE = "" } = process.env;
const line = new Delayline({ redis: REDIS, codec: "json" });
const queue = line.getBlockingQueue<string>(QUEUE);
const subscription = queue.subscribe((message) => {
  void tell({ message });
  if (message !== "last") throw new Error(`the handler does not like ${message}`);
});
await tell("ready");
process.on("message", () => {
  void (async () => {
    await subscription.close();
    await line.close();
    hangUp();
  })();
});
