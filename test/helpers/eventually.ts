import { setTimeout as sleep } from "node:timers/promises";

/**
 * How long a condition may take, in milliseconds, unless a test says otherwise. It outlasts the seconds for which a busy
 * machine stands still, and is shorter than the 24 s between two sweeps, which would hide a missed wake-up.
 */
const WITHIN = 20_000;

/** How often the condition is tried, in milliseconds. */
const INTERVAL = 5;

/**
 * Waits until a condition holds, and fails if it does not in time.
 *
 * The condition holds when it returns true or nothing, so one made of `expect` calls holds when none of them throws.
 *
 * @param options.within how long to wait, in milliseconds. Defaults to 20000.
 * @param options.what names the condition in the failure's message. Defaults to the condition's source.
 */
export async function eventually(
  condition: () => boolean | void | Promise<boolean | void>,
  options: { within?: number; what?: string } = {},
): Promise<void> {
  const { within = WITHIN, what = condition.toString() } = options;
  const deadline = performance.now() + within;
  for (;;) {
    let failure: unknown;
    try {
      if ((await condition()) !== false) return;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= deadline) {
      const last =
        failure instanceof Error ? `; the last time it failed with: ${failure.message}` : "";
      throw new Error(`not within ${within} ms: ${what}${last}`, { cause: failure });
    }
    await sleep(INTERVAL);
  }
}
