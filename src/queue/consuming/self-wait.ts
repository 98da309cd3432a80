import { awaiters } from "../../run/awaiters.ts";
import { sleepForNetwork } from "../../time/sleep.ts";
import type { Consumer } from "./consumer.ts";

/**
 * Waits for `closing`, which waits for consumers. A handler, or the body of a loop, that awaits this would wait for
 * itself: it is told so, and `closing` goes on. One that does not await it is not.
 *
 * @param consumers the consumers that `closing` waits for.
 * @throws {TypeError} if the code of one of them awaits this call.
 */
export async function unlessAwaitedBy(
  consumers: () => Iterable<Consumer>,
  closing: Promise<void>,
): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort();
  void closing.then(end, end);
  // The caller gets the promise first, and may await it later. Most handlers have ended by the first look.
  while (!over.signal.aborted) {
    await sleepForNetwork(INTERVAL, over.signal);
    const running = [...consumers()].filter((consumer) => consumer.running > 0);
    if (running.length === 0) continue;
    const callers = awaiters();
    if (over.signal.aborted || !running.some((consumer) => consumer.isAmong(callers))) continue;
    throw new TypeError(
      "close must not be awaited by a handler or the body of a loop, which it waits for; it goes on closing: call it there without await",
    );
  }
  await closing;
}

/** Milliseconds between two looks at who waits. */
const INTERVAL = 1000;
