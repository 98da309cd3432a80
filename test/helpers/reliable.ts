import { onTestFinished } from "vitest";
import { Connections } from "../../src/redis/connections.ts";
import { DelayedMessages } from "../../src/delayed/delayed-messages.ts";
import type { DelaylineError } from "../../src/index.ts";
import { queueKeys } from "../../src/queue/keys.ts";
import { Queue } from "../../src/queue/queue.ts";
import { Expiries } from "../../src/time/expiries.ts";
import { ServerClock } from "../../src/time/server-clock.ts";
import { Troubles } from "../../src/redis/troubles.ts";
import { redisUrl } from "./redis.ts";

/** The parts of a reliable queue, as a client makes them. Nothing moves or consumes its messages. */
export interface ReliableParts {
  readonly queue: Queue;
  readonly delayed: DelayedMessages;
  /** The errors reported so far. */
  readonly errors: readonly DelaylineError[];
}

/** Makes the parts; their connections end with the test. */
export function newReliableParts(name: string): ReliableParts {
  const errors: DelaylineError[] = [];
  const report = (error: DelaylineError) => void errors.push(error);
  const clock = new ServerClock();
  const connections = new Connections(redisUrl(), {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    troubles: new Troubles({ report, onRecovered: () => {} }),
  });
  const expiries = new Expiries(5000);
  const layout = { elements: "addresses", into: "stream" } as const;
  const queue = new Queue(name, queueKeys(name), layout, { connections, expiries, report });
  const offerBatches = new Set<never>();
  const delayed = new DelayedMessages(queue, { connections, clock, expiries, offerBatches });
  onTestFinished(() => connections.close());
  return { queue, delayed, errors };
}
