import { once } from "node:events";
import { Delayline } from "../../../index.ts";
import { sleepForNetwork } from "../../../inside.ts";
import { UsageError } from "../session/arguments.ts";
import { LEASE_TIMEOUT, WORK, type Order, type Report } from "./order.ts";

/**
 * Runs a worker of the demo in this process: handles one order after another, and reports to the process that started
 * it. Ends when that process does, or when the signal is aborted.
 */
export async function work(redis: string, queue: string, signal: AbortSignal): Promise<void> {
  const send = process.send?.bind(process);
  if (send === undefined) throw new UsageError("delayline demo starts its workers itself");
  // The last order is finished after the listener has gone.
  const report = (one: Report) => void send(one, undefined, undefined, () => {});
  const abandoned = once(process, "disconnect", { signal });
  await using line = new Delayline({ redis });
  // Redis may be gone for a moment. What is not acknowledged is delivered again.
  line.on("error", () => {});
  const orders = line.getReliableQueue<Order>(queue, { leaseTimeout: LEASE_TIMEOUT });
  let freeSince = await line.serverTime();
  orders.subscribe(
    async ({ number: order }, { attempt }) => {
      report({ what: "taken", order, attempt, at: await line.serverTime(), freeSince });
      await sleepForNetwork(WORK);
      report({ what: "handled", order });
      freeSince = await line.serverTime();
    },
    { concurrency: 1 },
  );
  report({ what: "ready" });
  await abandoned.catch(() => {});
}
