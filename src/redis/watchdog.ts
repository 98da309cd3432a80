import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { Heartbeat } from "./heartbeat.ts";

/**
 * Gives a connection up when it has died silently. What was under way is sent again, or rejected, as the
 * connection's options say.
 *
 * @param ask sends a command to which Redis replies at once.
 * @param probe resolves when Redis has replied to another connection to the same address.
 * @param onSilence is called each second in which a reply is overdue.
 */
export function watchOver(
  connection: Redis,
  ask: () => Promise<unknown>,
  probe: () => Promise<void>,
  onSilence?: () => void,
): Heartbeat {
  let isDeciding = false;
  const decide = async (): Promise<void> => {
    isDeciding = true;
    const isDead = await hasDied({
      isSilent: () => heartbeat.isSilent && connection.status === "ready",
      probe,
      grace: GRACE,
    });
    isDeciding = false;
    // With `true`: a plain disconnect() would be final.
    if (isDead) connection.disconnect(true);
  };
  const heartbeat = new Heartbeat(connection, ask, () => {
    onSilence?.();
    if (!isDeciding) void decide();
  });
  return heartbeat;
}

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

/** Milliseconds that a reply may be late while Redis replies to others. */
const GRACE = 500;
