import type { Redis } from "ioredis";
import { parseFact } from "../../src/partitions/ring/fact.ts";
import { WAITS } from "../../src/lua/places/retries.ts";

/** What the queues of some servers hold. */
export interface Contents {
  /** Messages that will still be delivered: delayed, waiting for their turn, ready, in flight, retrying, or between two partitions. */
  readonly live: number;
  readonly dead: number;
  /** When the last of the delayed and retrying messages is due (epoch ms). */
  readonly lastDueAt: number;
  /** Keys that should not be there once every message has left and every client has closed. */
  readonly left: readonly string[];
}

/** Looks at all keys of these servers. For servers that hold little. */
export async function contentsOf(servers: readonly Redis[]): Promise<Contents> {
  let live = 0;
  let dead = 0;
  let lastDueAt = 0;
  const left: string[] = [];
  for (const redis of servers) {
    const names = (await redis.keys("*")).toSorted();
    for (const key of names) {
      if (OTHERS.some((prefix) => key.startsWith(prefix))) continue;
      const kind = kindOf(key);
      const count = await countOf(redis, key);
      if (kind === "delayed" || kind === "retries") {
        // A retry that waits for its turn is due.
        const found = await redis.zrevrangebyscore(key, WAITS, "-inf", "WITHSCORES", "LIMIT", 0, 1);
        lastDueAt = Math.max(lastDueAt, Number(found[1] ?? 0));
      }
      if (LIVE.includes(kind)) live += count;
      if (kind === "dead") dead += count;
      if (kind === "paused" && (await isNobodys(redis, key, names))) continue;
      if (count > 0 && !LASTING.includes(kind)) left.push(`${key} (${count})`);
    }
  }
  return { live, dead, lastDueAt, left };
}

/**
 * Whether the key is that of an ordinary queue that has become partitions, and its pause stays with it; or of a partition
 * that was prepared by a process that died then, and is not there.
 */
async function isNobodys(redis: Redis, key: string, names: readonly string[]): Promise<boolean> {
  const factKey = key.replace(/_\w+:/, "_partitions:");
  const [, partition] = /\/(\d+)\/\d+\}$/.exec(key) ?? [];
  if (partition === undefined) return names.includes(factKey);
  const fact = parseFact((await redis.get(factKey)) ?? "");
  return fact?.state !== "stable" || Number(partition) >= fact.to;
}

function kindOf(key: string): string {
  if (key.startsWith("redisson_delay_queue_timeout:")) return "delayed";
  if (key.startsWith("redisson_delay_queue:")) return "order";
  return /^delayline_(\w+):/.exec(key)?.[1] ?? "ready";
}

/** How much a key holds. A stream, a journal without a batch, and revisions of sets may stay when they are empty; any other key is gone then. */
async function countOf(redis: Redis, key: string): Promise<number> {
  switch (await redis.type(key)) {
    case "zset":
      return await redis.zcard(key);
    case "list":
      return await redis.llen(key);
    case "stream":
      return await redis.xlen(key);
    case "hash": {
      const fields = await redis.hkeys(key);
      if (kindOf(key) === "journal") return Number(fields.includes("rows"));
      // The revision of a set stays.
      return fields.filter((field) => !field.startsWith("\0")).length;
    }
    default:
      return 1;
  }
}

const LIVE = ["delayed", "room", "ready", "stream", "retries", "journal"];

/**
 * What may stay for good, or until it expires: hints, what is known of the partitions, numbers that must not be used
 * again, what was handled, how many were dropped, which handlers of revoked messages
 * may still run. The insertion order of messages that were cancelled goes with a later transfer or sweep. What is in
 * the quarantine was taken out for a call that had been given up.
 */
const LASTING = [
  "order",
  "compacted",
  "listed",
  "mover",
  "receipts",
  "returned",
  "groups",
  "partitions",
  "members",
  "arrivals",
  "holder",
  "handled",
  "dropped",
  "activity",
  "quarantine",
  "revoked",
];

/** How keys begin that are no queue's: those of the machine, and of the user's own. */
const OTHERS = ["sim:", "user:"];
