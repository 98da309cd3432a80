import { isUnchanged, textOf } from "../lua/queue/stats.ts";
import { runTogether } from "../lua/together.ts";
import type { QueueStats } from "../observe/queue-stats.ts";
import type { RedisClient } from "../redis/client.ts";
import { queueKeys } from "./keys.ts";

/**
 * Returns those of the ordinary queues whose numbers are as they were read before, but for the time. Looks at up to `most` in
 * one command.
 *
 * Never rejects: a queue that cannot be read is not among them.
 */
export async function unchangedAmong(
  redis: RedisClient,
  before: Iterable<readonly [string, QueueStats]>,
  most: number,
): Promise<string[]> {
  const looks = Array.from(
    before,
    async ([name, { kind, consumers = 0, listeners = -1, ...numbers }]) => {
      const keys = queueKeys(name);
      const known = textOf({ ...numbers, isReliable: kind === "reliable", consumers, listeners });
      const args = { channel: keys.channel, known };
      const isSame = await runTogether(redis, isUnchanged, keys, args, most).catch(() => false);
      return isSame ? [name] : [];
    },
  );
  return (await Promise.all(looks)).flat();
}
