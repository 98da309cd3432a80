import type { OpenQueue } from "../partitions/open-queue.ts";
import type { Patience } from "../time/patience.ts";

/**
 * Closes one queue of a client that stays open: stops taking and moving its messages, waits for its handlers while
 * `patience` lasts, refuses further calls, and settles the offers under way. Never rejects.
 */
export async function closeQueue(queue: OpenQueue, patience: Patience): Promise<void> {
  await queue.stopTaking();
  await waitForHandlers([queue], patience);
  await queue.close();
}

/** Waits for the handlers of queues while `patience` lasts, and reports those that still run then. */
export async function waitForHandlers(
  queues: readonly OpenQueue[],
  patience: Patience,
): Promise<void> {
  const ended = Promise.all(queues.map((queue) => queue.handlersEnded()));
  if (!(await patience.waitFor(ended))) for (const queue of queues) queue.reportRunning();
}
