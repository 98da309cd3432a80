import { tellHolder } from "../lua/partitions/hold.ts";
import type { QueueNumbers } from "../nouns/numbers.ts";
import { numbersOf } from "../observe/queue-stats.ts";
import type { Call } from "../queue/call.ts";
import { nodeOf, serverOf } from "../redis/cluster-node.ts";
import { isCluster } from "../redis/client.ts";
import { statsOf } from "./parts/numbers.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";

/** A partition, with the numbers that `stats()` has of it, and where it is. */
export interface PartitionInfo extends QueueNumbers {
  /** Its number; -1 for the ordinary queue, while that is a part of this one. */
  readonly partition: number;
  /** Its name as a queue, which is also the Redis key of its ready messages. */
  readonly name: string;
  /** The server that it is on, as "host:port"; undefined while that is unknown. */
  readonly node: string | undefined;
  /** The process that consumes it exclusively, if one does. */
  readonly holder: string | undefined;
}

/** Describes each partition that may hold messages; returns an empty array for an ordinary queue. */
export async function describePartitions(parts: Parts, call?: Call): Promise<PartitionInfo[]> {
  if ((await parts.following.look(call)) === undefined) return [];
  return await Promise.all(
    parts.active.map(async (part) => {
      return {
        partition: part.partition,
        name: part.queue.name,
        node: await addressOf(part),
        ...(await describe(part, call)),
      };
    }),
  );
}

async function describe({ queue }: Part, call: Call | undefined) {
  const [stats, holder] = await Promise.all([
    statsOf(queue, call),
    queue.read("look at", tellHolder, {}, call),
  ]);
  // A change of the number of partitions is no consumer.
  const isChange = holder?.startsWith("change:") === true;
  return { ...numbersOf(stats), holder: isChange ? undefined : holder };
}

async function addressOf({ queue }: Part): Promise<string | undefined> {
  try {
    const { background } = queue.server.connections;
    const client = isCluster(background) ? await nodeOf(background, queue.keys.ready) : background;
    const { host, port, path, sentinels } = client.options;
    // Behind Sentinels the options name no server.
    if (sentinels) return client.status === "ready" ? serverOf(client) : undefined;
    return path ?? `${host}:${port}`;
  } catch {
    return undefined;
  }
}
