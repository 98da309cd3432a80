import { onTestFinished } from "vitest";
import { Connections } from "../../src/connections.ts";
import { queueKeys } from "../../src/keys.ts";
import { ServerClock } from "../../src/server-clock.ts";
import { Subscriber } from "../../src/subscriber.ts";
import { TransferTask, type SweepIntervals } from "../../src/transfer-task.ts";
import { redisUrl } from "./redis.ts";

function report(error: Error): never {
  throw error;
}

/** Sweeps all the time. */
export const OFTEN: SweepIntervals = { ordinary: 50, deaf: 50 };

/**
 * A transfer task by itself, which sweeps more often than those of a client: nobody waits half a minute.
 * An error that it reports fails the test. It ends with the test.
 */
export function startTransferTask(
  name: string,
  sweeps: SweepIntervals,
  { url = redisUrl(), isExact = false } = {},
): TransferTask {
  const connections = new Connections(url);
  const subscriber = new Subscriber(connections, report);
  const shared = { connections, subscriber, clock: new ServerClock(), report };
  const task = new TransferTask(name, queueKeys(name), isExact, shared, sweeps);
  onTestFinished(async () => {
    await task.close();
    subscriber.close();
    connections.close();
  });
  return task;
}
