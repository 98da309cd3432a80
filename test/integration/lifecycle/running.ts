import { onTestFinished } from "vitest";
import type { Server } from "../../../src/redis/server.ts";
import { Troubles } from "../../../src/redis/troubles.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { newPart } from "../../helpers/part.ts";
import { newServer } from "../../helpers/server.ts";

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
export function share(url: string): Server {
  const server = newServer({ url, callTimeout: CALL_TIMEOUT, unreachableTimeout: CLOSE_TIMEOUT });
  onTestFinished(() => {
    server.subscriber.close();
    server.connections.close();
  });
  return server;
}

/** An open, unused queue, and what a client passes to its parts. */
export function newOpen(url: string) {
  const shared = share(url);
  const open = newPart(uniqueName(), shared);
  return { shared, open, queue: open.queue };
}

/**
 * Closes a part as the client does. After `unreachableTimeout` the client ends the connections below it: first those that
 * take and move (`abandon`), and where offers are awaited, all of them (`close`).
 */
export async function closeWithin(
  { connections }: Server,
  close: () => Promise<unknown>,
  giveUp: "abandon" | "close" = "abandon",
): Promise<void> {
  const givingUp = setTimeout(() => connections[giveUp](), CLOSE_TIMEOUT);
  await close();
  clearTimeout(givingUp);
}
