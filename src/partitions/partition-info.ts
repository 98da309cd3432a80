import { readFact } from "../lua/partitions/fact.ts";
import { asNumber } from "../lua/reply.ts";
import { nodeOf, serverOf } from "../redis/cluster-node.ts";
import { isCluster } from "../redis/client.ts";
import type { Part } from "./parts/part.ts";
import type { Parts } from "./parts/parts.ts";

/** A partition, and what is in it. */
export interface PartitionInfo {
  /** Its number; -1: the ordinary queue, while it is taken in. */
  readonly partition: number;
  /** The name of the queue that it is, which is also the Redis key of its ready messages. */
  readonly name: string;
  /** The server that it is on, as "host:port"; undefined if that is not known now. */
  readonly node: string | undefined;
  /** How many messages are delayed or wait for a retry. */
  readonly delayed: number;
  /** How many are ready: in the LIST, or in the stream and in nobody's hand. Several groups count each their own. */
  readonly ready: number;
  /** How many are in the hands of consumers of a reliable queue, for all groups. */
  readonly inFlight: number;
  /** The process that consumes it exclusively, if one does. */
  readonly holder: string | undefined;
}

/** Describes each partition that may hold messages; none if the queue has no partitions. */
export async function describePartitions(
  parts: Parts,
  signal?: AbortSignal,
): Promise<PartitionInfo[]> {
  if (!(await arePartitions(parts, signal))) return [];
  await parts.fresh(signal);
  return await Promise.all(
    parts.active.map(async (partition) => {
      const part = parts.at(partition);
      return {
        partition,
        name: part.queue.name,
        node: await addressOf(part),
        ...(await countsOf(part, signal)),
      };
    }),
  );
}

/** Whether the queue has partitions. None are made. */
export async function arePartitions(parts: Parts, signal?: AbortSignal): Promise<boolean> {
  if (parts.fact !== undefined) return true;
  const { queue } = parts.first;
  const fact = await queue.read("ask for the partitions of", readFact, {}, { signal });
  return fact !== undefined;
}

async function countsOf(
  { queue }: Part,
  signal?: AbortSignal,
): Promise<Pick<PartitionInfo, "delayed" | "ready" | "inFlight" | "holder">> {
  return await queue.call(
    "look at",
    async (redis, keys) => {
      const [delayed, retrying, listed, streamed, holder] = await Promise.all([
        redis.zcard(keys.timeouts),
        redis.zcard(keys.retries),
        redis.llen(keys.ready),
        redis.xlen(keys.stream),
        redis.hget(keys.holder, "holder"),
      ]);
      const groups =
        asNumber(streamed) === 0 ? [] : ((await redis.xinfo("GROUPS", keys.stream)) as unknown[][]);
      const inFlight = groups.map((group) => Number(group[group.indexOf("pending") + 1]));
      const flying = inFlight.reduce((sum, one) => sum + one, 0);
      const entries = asNumber(streamed) * Math.max(1, groups.length);
      return {
        delayed: asNumber(delayed) + asNumber(retrying),
        ready: asNumber(listed) + Math.max(0, entries - flying),
        inFlight: flying,
        holder: holder ?? undefined,
      };
    },
    signal,
  );
}

async function addressOf({ queue, server }: Part): Promise<string | undefined> {
  try {
    const { background } = server.connections;
    const client = isCluster(background) ? await nodeOf(background, queue.keys.ready) : background;
    const { host, port, path, sentinels } = client.options;
    // Behind Sentinel the options name no server.
    if (sentinels) return client.status === "ready" ? serverOf(client) : undefined;
    return path ?? `${host}:${port}`;
  } catch {
    return undefined;
  }
}
