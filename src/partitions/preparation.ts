import { setPaused } from "../lua/queue/set-paused.ts";
import { openGroup } from "../lua/reliable/open-group.ts";
import { FROM_ORDINARY, ORDINARY, type Fact } from "./fact.ts";
import { fewAtOnce } from "./few-at-once.ts";
import type { Parts } from "./parts.ts";

/**
 * Lets what holds for partition 0 hold for the new ones, before a message can be in them. Some may have been there
 * before. Whether it is paused is looked at again: whoever changes that meanwhile may not know of the new ones.
 */
export async function prepare(
  parts: Parts,
  { from, to }: Fact,
  signal: AbortSignal | undefined,
): Promise<void> {
  const source = from === FROM_ORDINARY ? ORDINARY : 0;
  const model = parts.at(source);
  const added = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
  for (const group of await groupsOf(parts, source, signal)) {
    await fewAtOnce(added, async (partition) => {
      const { queue } = parts.at(partition);
      const args = { channel: queue.keys.channel, group, start: "0" };
      await queue.read("open", openGroup, args, { signal });
    });
  }
  let isPaused: boolean;
  do {
    isPaused = await model.pauses.ask(signal);
    const flag = isPaused ? 1 : 0;
    await fewAtOnce(added, async (partition) => {
      const { queue } = parts.at(partition);
      const args = { channel: queue.keys.channel, isPaused: flag };
      await queue.read(isPaused ? "pause" : "resume", setPaused, args, { signal });
    });
  } while ((await model.pauses.ask(signal)) !== isPaused);
}

/** The consumer groups of a partition's stream; none if it is plain. */
async function groupsOf(parts: Parts, partition: number, signal?: AbortSignal): Promise<string[]> {
  const { queue } = parts.at(partition);
  const groups = await queue.call(
    "ask for the groups of",
    async (redis, { stream }) => {
      if ((await redis.exists(stream)) === 0) return [];
      return (await redis.xinfo("GROUPS", stream)) as (string | number)[][];
    },
    signal,
  );
  return groups.map((group) => String(group[group.indexOf("name") + 1]));
}
