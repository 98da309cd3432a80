import { DeadlineTimer } from "../time/deadline-timer.ts";
import type { Patience } from "../time/patience.ts";
import { waitForHandlers } from "./close-queue.ts";
import type { OpenQueues } from "./open-queues.ts";
import type { Servers } from "../redis/server.ts";
import { networkTime, setImmediate } from "../time/runtime.ts";

/**
 * Closes a client: stops taking and moving messages, waits for handlers while `patience` lasts, refuses further calls,
 * settles the offers under way, and ends the connections. Handlers may still open more queues. Never rejects.
 */
export async function closeClient(
  open: OpenQueues,
  servers: Servers,
  patience: Patience,
): Promise<void> {
  const { unreachableTimeout } = servers[0];
  open.beginClosing();
  for (const { troubles } of servers) troubles.closing();
  const queues = open.all;

  const startedAt = networkTime.now();
  const abandoning = new DeadlineTimer(() => {
    for (const { connections } of servers) connections.abandon();
  }, networkTime);
  abandoning.reset(startedAt + unreachableTimeout);
  await Promise.all(queues.map((queue) => queue.stopTaking()));
  abandoning.clear();
  const timeLeft = Math.max(0, startedAt + unreachableTimeout - networkTime.now());

  await waitForHandlers(queues, patience);
  open.close();

  // Offers may be waiting for a Redis that is down. Ending the connections rejects them.
  let givingUp: DeadlineTimer | undefined;
  const givenUp = new Promise<void>((resolve) => {
    givingUp = new DeadlineTimer(() => {
      for (const { connections } of servers) connections.close();
      // A lent client may keep the offers for ever. Do not wait for them.
      setImmediate(resolve);
    }, networkTime);
    givingUp.reset(networkTime.now() + timeLeft);
  });
  await Promise.race([Promise.all(open.all.map((queue) => queue.close())), givenUp]);
  givingUp?.clear();

  // From now on, failures are expected, because we end the connections.
  for (const server of servers) server.close();
  // Emit the last reports before this resolves: the caller may end the process then.
  await new Promise<void>((resolve) => setImmediate(resolve));
}
