import type { Redis } from "ioredis";
import { Heartbeat, type Beats } from "./heartbeat.ts";
import { sleepForNetwork } from "../time/sleep.ts";

/**
 * Reconnects a connection once it has died silently. The connection's options decide whether the commands under way are
 * sent again or rejected.
 *
 * @param probe resolves when Redis has replied to another connection to the same address.
 */
export function watchOver(connection: Redis, beats: Beats, probe: () => Promise<void>): Heartbeat {
  let isDeciding = false;
  const decide = async (): Promise<void> => {
    isDeciding = true;
    const isDead = await hasDied({
      isAwaited: () => heartbeat.isOverdue && connection.status === "ready",
      isSilent: () => heartbeat.isSilent,
      probe,
      grace: GRACE,
    });
    isDeciding = false;
    // `true` means reconnect: without it, ioredis ends the client for good.
    if (isDead) connection.disconnect(true);
  };
  const onSilence = () => {
    beats.onSilence();
    if (!isDeciding) void decide();
  };
  const heartbeat = new Heartbeat(connection, { ...beats, onSilence });
  return heartbeat;
}

/** A connection whose reply is overdue. */
export interface Suspect {
  /** Whether the reply is still overdue. */
  readonly isAwaited: () => boolean;
  /** Whether nothing comes: the connection stands still; see {@link Progress}. */
  readonly isSilent: () => boolean;
  /** Resolves when Redis has replied to another connection; rejects if it does not reply. */
  readonly probe: () => Promise<void>;
  /** Milliseconds that the reply may be late after Redis has replied to another connection. */
  readonly grace: number;
}

/**
 * Decides whether a connection with an overdue reply has died: resolves to true if so, and to false once the reply has
 * come.
 *
 * The reply may hold a popped message. If Redis or the link is only slow, ending the connection would lose it. So a
 * connection counts as dead only if no byte moves on it while Redis replies to another one.
 */
export async function hasDied({ isAwaited, isSilent, probe, grace }: Suspect): Promise<boolean> {
  while (isAwaited()) {
    // Over a slow link, a probe would only stand in the way of what comes.
    const isReplying =
      isSilent() &&
      (await probe().then(
        () => true,
        // Redis does not reply to the other one either, so this connection is not to blame.
        () => false,
      ));
    await sleepForNetwork(grace);
    if (isReplying && isAwaited() && isSilent()) return true;
  }
  return false;
}

/** See {@link Suspect.grace}. */
const GRACE = 500;
