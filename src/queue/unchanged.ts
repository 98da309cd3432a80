import { isUnchanged, textOf } from "../lua/queue/stats.ts";
import { runTogether } from "../lua/together.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { RedisClient } from "../redis/client.ts";
import { queueKeys, type QueueKeys } from "./keys.ts";

/**
 * Returns those of the ordinary queues whose numbers are as they were read before, but for the time. Looks at up to `most`
 * in one command.
 *
 * Never rejects: a queue that cannot be read is not among them.
 */
export async function unchangedAmong(
  redis: RedisClient,
  before: Iterable<readonly [string, QueueStats]>,
  most: number,
): Promise<string[]> {
  const look = async ([name, stats]: readonly [string, QueueStats]) => {
    const { keys, args } = lookOf(name, stats);
    const isSame = await runTogether(redis, isUnchanged, keys, args, most).catch(() => false);
    return isSame ? [name] : [];
  };
  return (await Promise.all(Array.from(before, look))).flat();
}

interface Look {
  readonly keys: QueueKeys;
  readonly args: { readonly channel: string; readonly shares: 1; readonly known: string };
}

/** What to send, computed once for the numbers of a queue. */
function lookOf(name: string, stats: QueueStats): Look {
  let look = looks.get(stats);
  if (look === undefined) {
    const { kind, consumers = 0, listeners = -1, ...numbers } = stats;
    const known = textOf({ ...numbers, isReliable: kind === "reliable", consumers, listeners });
    const keys = queueKeys(name);
    looks.set(stats, (look = { keys, args: { channel: keys.channel, shares: 1, known } }));
  }
  return look;
}

const looks = new WeakMap<QueueStats, Look>();
