import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { delayline, Producer } from "./delayline.ts";
import { QUEUE, type Peer } from "./peer.ts";

/** Delayline's reliable queue, whose messages stay until they are acknowledged, as those of BullMQ and bee-queue do. */
export const reliable: Peer = {
  title: "Delayline, reliable",
  settings: "as above, with getReliableQueue; BullMQ's and bee-queue's workers acknowledge, too",
  delayedKey: delayline.delayedKey,

  async openProducer(url) {
    const line = new Delayline({ redis: url });
    return new Producer(line, line.getReliableQueue(QUEUE, { transfer: false }));
  },

  async openWorker(url, concurrency, onMessage) {
    const line = new Delayline({ redis: url });
    line.getReliableQueue<string>(QUEUE).subscribe(onMessage, { concurrency });
    return line;
  },

  async fill(url, payloads) {
    await using line = new Delayline({ redis: url });
    const queue = line.getReliableQueue<string>(QUEUE);
    await queue.offerMany(payloads.map((payload) => ({ payload, delay: 0 })));
    while ((await queue.size()) > 0) await sleep(5);
  },
};
