import { onTestFinished } from "vitest";
import { Connections } from "../../src/redis/connections.ts";
import type { Elements } from "../../src/lua/family.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { PauseWatch } from "../../src/queue/pause-watch.ts";
import { Queue } from "../../src/queue/queue.ts";
import { Expiries } from "../../src/time/expiries.ts";
import { ServerClock } from "../../src/time/server-clock.ts";
import { Subscriber } from "../../src/redis/subscriber.ts";
import { Troubles } from "../../src/redis/troubles.ts";
import type { Sweeps } from "../../src/delayed/transfer/sweep-rhythm.ts";
import { TransferTask } from "../../src/delayed/transfer/transfer-task.ts";
import { redisUrl } from "./redis.ts";

function report(error: Error): never {
  throw error;
}

/** Sweeps every 50 ms. */
export const OFTEN = { ordinary: 50, deaf: 50 };

/** Does not sweep during a test unless it is asked to. */
export const SELDOM = { ordinary: 3_600_000, deaf: 3_600_000 };

interface TransferTaskOptions {
  readonly url?: string;
  readonly elements?: Elements;
  readonly clock?: ServerClock;
  /** As a transfer task knows it. */
  readonly onRefused?: (error: unknown) => boolean;
}

/**
 * Starts a transfer task by itself, with a sweep interval that a test can wait for. An error that it reports fails the
 * test. It ends with the test.
 */
export function startTransferTask(
  name: string,
  sweeps: Sweeps,
  options: TransferTaskOptions = {},
): TransferTask {
  const { url = redisUrl(), elements = "addresses", clock = new ServerClock() } = options;
  const { onRefused = () => false } = options;
  const troubles = new Troubles({ report, onRecovered: () => {} });
  const connections = new Connections(url, {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    troubles,
  });
  const subscriber = new Subscriber(connections, troubles);
  const keys = queueKeys(name);
  const layout = { elements, into: "list" } as const;
  const queue = new Queue(name, keys, layout, {
    connections,
    expiries: new Expiries(5000),
    report,
  });
  const pauses = new PauseWatch(queue, { connections, subscriber, troubles });
  const shared = { connections, subscriber, clock, pauses, report, troubles, onRefused };
  const task = new TransferTask(queue, shared, sweeps);
  onTestFinished(async () => {
    await task.close();
    subscriber.close();
    connections.close();
  });
  return task;
}
