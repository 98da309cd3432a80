import { expect, onTestFinished } from "vitest";
import { OpenQueue } from "../../src/client/open-queue.ts";
import type { DelaylineError } from "../../src/errors.ts";
import type { Elements } from "../../src/lua/family.ts";
import { Connections } from "../../src/redis/connections.ts";
import { Subscriber } from "../../src/redis/subscriber.ts";
import { Troubles } from "../../src/redis/troubles.ts";
import { Expiries } from "../../src/time/expiries.ts";
import { ServerClock } from "../../src/time/server-clock.ts";
import { redisUrl } from "./redis.ts";

interface OpenQueueOptions {
  readonly url?: string;
  readonly elements?: Elements;
  /** Whether the test causes errors; otherwise an error fails it. Defaults to false. */
  readonly mayFail?: boolean;
}

/** One open queue with a client of its own. It ends with the test, or when it is closed. */
export interface TestQueue {
  readonly open: OpenQueue;
  /** The errors reported so far. */
  readonly errors: readonly DelaylineError[];
  readonly close: () => Promise<void>;
}

/** Opens a queue below the users' classes, on the shared Redis by default. */
export function newOpenQueue(
  name: string,
  { url = redisUrl(), elements = "addresses", mayFail = false }: OpenQueueOptions = {},
): TestQueue {
  const errors: DelaylineError[] = [];
  const report = (error: DelaylineError) => void errors.push(error);
  const clock = new ServerClock();
  const troubles = new Troubles({ report, onRecovered: () => {} });
  const connections = new Connections(url, {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    troubles,
  });
  const subscriber = new Subscriber(connections, troubles);
  const open = new OpenQueue(name, elements, {
    connections,
    subscriber,
    clock,
    offerBatches: new Set(),
    expiries: new Expiries(5000),
    closeTimeout: 2000,
    report,
    troubles,
  });
  let closing: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await open.stopTaking();
    await open.close();
    troubles.close();
    subscriber.close();
    connections.close();
  };
  const close = () => (closing ??= end());
  onTestFinished(async () => {
    await close();
    if (!mayFail) expect(errors).toEqual([]);
  });
  return { open, errors, close };
}
