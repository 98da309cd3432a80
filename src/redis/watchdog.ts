import { setTimeout as sleep } from "node:timers/promises";

/** What a watch is about. */
export interface Watch {
  /** Whether the reply is still overdue. */
  readonly isSilent: () => boolean;
  /** Resolves when Redis has replied to another connection; rejects if it does not. */
  readonly probe: () => Promise<void>;
  /** Milliseconds that the reply may be late while Redis replies to others. */
  readonly grace: number;
}

/**
 * Decides about a connection whose reply is overdue: resolves with true if the connection has died,
 * and with false if its reply came after all.
 *
 * The reply may be a popped message, and Redis may only be slow: to give the connection up would
 * then lose the message. So a connection counts as dead only where Redis replies to another one
 * meanwhile.
 */
export async function hasDied({ isSilent, probe, grace }: Watch): Promise<boolean> {
  while (isSilent()) {
    const isReplying = await probe().then(
      () => true,
      // Redis replies to nobody: it is not this connection that is to blame.
      () => false,
    );
    await sleep(grace);
    if (isReplying) return isSilent();
  }
  return false;
}
