import { isRefusedForNow } from "../failure.ts";
import { Pause } from "../time/pause.ts";

/**
 * Sends a command, and sends it again as long as `mayRetry` says of its error that it may be, for a few
 * seconds in all. By default that is where Redis did nothing and may accept it a little later, as in
 * the course of a failover.
 */
export async function retrying<Reply>(
  send: () => Promise<Reply>,
  mayRetry: (error: unknown) => boolean = isRefusedForNow,
): Promise<Reply> {
  const startedAt = performance.now();
  const pause = new Pause(50, 500);
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!mayRetry(error) || performance.now() - startedAt > PATIENCE) throw error;
      await pause.wait();
    }
  }
}

/** Milliseconds after which no further attempt is made. */
const PATIENCE = 5000;
