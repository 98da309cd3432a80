/** Offers ORDERS orders with delays of up to MAX_DELAY milliseconds, as fast as it can. */
import { Delayline } from "delayline";
import { endWithParent, hangUp, tell } from "../child/parent.ts";

endWithParent();
const { REDIS_URL = "", QUEUE = "", ORDERS, MAX_DELAY } = process.env;

await using line = new Delayline({ redis: REDIS_URL });
// It only offers: the workers, which stay, move the due messages.
const orders = line.getDelayedQueue<{ order: number }>(QUEUE, { transfer: false });

await tell("ready");
for (let first = 0; first < Number(ORDERS); first += 100) {
  const messages = Array.from({ length: 100 }, (_, i) => ({
    payload: { order: first + i },
    delay: Math.random() * Number(MAX_DELAY),
  }));
  const results = await orders.offerMany(messages);
  await tell(results.map(({ deadline }, i) => [first + i, deadline]));
}
hangUp();
