import { onTestFinished } from "vitest";
import { OpenQueue } from "../../../src/client/open-queue.ts";
import type { OpenServer } from "../../../src/client/open-server.ts";
import { Connections } from "../../../src/redis/connections.ts";
import { Subscriber } from "../../../src/redis/subscriber.ts";
import { Troubles } from "../../../src/redis/troubles.ts";
import { Expiries } from "../../../src/time/expiries.ts";
import { ServerClock } from "../../../src/time/server-clock.ts";
import { uniqueName } from "../../helpers/redis.ts";

/** Something that runs until it is closed. */
export interface Running {
  /** Gives it work, which may go on until it is closed. The promises may reject then. */
  start(): unknown;
  close(): unknown;
}

/** A kind of thing that runs. */
export interface Kind {
  /** The files in `src/` whose `close`, `stop` or `end` are part of it. */
  readonly files: readonly string[];
  /** Makes one, on the Redis at `url`. */
  readonly make: (url: string) => Running;
}

/** Milliseconds that a client may take to close while Redis is away. */
export const CLOSE_TIMEOUT = 200;

/** Milliseconds that a call may take. A close that waits this long takes too long. */
export const CALL_TIMEOUT = 60_000;

export function newTroubles(): Troubles {
  return new Troubles({ report: () => {}, onRecovered: () => {} });
}

/** The parts that a client's queues share. They end with the test. Errors that nobody awaits are ignored. */
export function share(url: string): OpenServer {
  const clock = new ServerClock();
  const troubles = newTroubles();
  const connections = new Connections(url, {
    onTime: (serverTime, sentAt) => clock.observe(serverTime, sentAt),
    troubles,
  });
  const subscriber = new Subscriber(connections, troubles);
  onTestFinished(() => {
    subscriber.close();
    connections.close();
  });
  return {
    connections,
    subscriber,
    clock,
    offerBatches: new Set<never>(),
    expiries: new Expiries(CALL_TIMEOUT),
    closeTimeout: CLOSE_TIMEOUT,
    report: () => {},
    troubles,
  };
}

/** An open, unused queue, and what a client passes to its parts. */
export function newOpen(url: string) {
  const shared = share(url);
  const open = new OpenQueue(uniqueName(), "addresses", shared);
  return { shared, open, queue: open.queue, parts: { ...shared, pauses: open.pauses } };
}

/**
 * Closes a part as the client does. After `closeTimeout` the client ends the connections below it: first those that
 * take and move (`abandon`), and where offers are awaited, all of them (`close`).
 */
export async function closeWithin(
  { connections }: OpenServer,
  close: () => Promise<unknown>,
  giveUp: "abandon" | "close" = "abandon",
): Promise<void> {
  const givingUp = setTimeout(() => connections[giveUp](), CLOSE_TIMEOUT);
  await close();
  clearTimeout(givingUp);
}
