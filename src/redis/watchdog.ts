import { setTimeout as sleep } from "node:timers/promises";

/** What a watch is about. */
export interface Watch {
  /** Whether the answer is still overdue. */
  readonly isSilent: () => boolean;
  /** Resolves when Redis has answered another connection; rejects if it does not. */
  readonly probe: () => Promise<void>;
  /** Milliseconds that the answer may be late while Redis answers others. */
  readonly grace: number;
}

/**
 * Decides about a connection whose answer is overdue: resolves with true if the connection has died,
 * and with false if its answer came after all.
 *
 * The answer may be a popped message, and Redis may only be slow: to give the connection up would
 * then lose the message. So a connection counts as dead only where Redis answers another one
 * meanwhile.
 */
export async function hasDied({ isSilent, probe, grace }: Watch): Promise<boolean> {
  while (isSilent()) {
    const isAnswering = await probe().then(
      () => true,
      // Redis answers nobody: it is not this connection that is to blame.
      () => false,
    );
    await sleep(grace);
    if (isAnswering) return isSilent();
  }
  return false;
}
