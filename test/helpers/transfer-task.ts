import { onTestFinished } from "vitest";
import { Connections } from "../../src/redis/connections.ts";
import type { Elements } from "../../src/lua/family.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { ServerClock } from "../../src/time/server-clock.ts";
import { Subscriber } from "../../src/redis/subscriber.ts";
import { TransferTask, type SweepIntervals } from "../../src/delayed/transfer-task.ts";
import { redisUrl } from "./redis.ts";

function report(error: Error): never {
  throw error;
}

/** Sweeps all the time. */
export const OFTEN: SweepIntervals = { ordinary: 50, deaf: 50 };

interface TransferTaskOptions {
  readonly url?: string;
  readonly elements?: Elements;
  readonly clock?: ServerClock;
}

/**
 * A transfer task by itself, which sweeps more often than those of a client: nobody waits half a minute.
 * An error that it reports fails the test. It ends with the test.
 */
export function startTransferTask(
  name: string,
  sweeps: SweepIntervals,
  { url = redisUrl(), elements = "addresses", clock = new ServerClock() }: TransferTaskOptions = {},
): TransferTask {
  const connections = new Connections(url, {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    report,
  });
  const subscriber = new Subscriber(connections, report);
  const shared = { connections, subscriber, clock, report };
  const task = new TransferTask(name, queueKeys(name), { elements, into: "list" }, shared, sweeps);
  onTestFinished(async () => {
    await task.close();
    subscriber.close();
    connections.close();
  });
  return task;
}
