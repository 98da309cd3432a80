import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";

/** What Redis does when its memory is full, and how full it is. */
export function* checkMemory({ address, info }: ServerReport): Generator<Finding> {
  const policy = info.get("maxmemory_policy") ?? "noeviction";
  const limit = Number(info.get("maxmemory") ?? 0);
  const used = Number(info.get("used_memory") ?? 0);
  if (policy !== "noeviction") {
    const isAnyKey = policy.startsWith("allkeys");
    yield {
      level: isAnyKey ? "error" : "warning",
      check: "eviction",
      what: `${address} has maxmemory-policy ${policy}${limit === 0 ? ", and no maxmemory yet" : ""}`,
      why: isAnyKey
        ? "Redis deletes whole queues when its memory is full"
        : "Redis deletes keys that expire: who is a member of a queue in partitions, and receipts that keep a message from being given back twice",
      repair: redisCli(address, "CONFIG SET maxmemory-policy noeviction"),
    };
  }
  if (limit > 0 && used > limit * FULL) {
    const isFull = used > limit * NEARLY_ALL;
    yield {
      level: isFull ? "error" : "warning",
      check: "memory",
      what: `${address} uses ${megabytes(used)} of maxmemory ${megabytes(limit)}, ${Math.floor((100 * used) / limit)} %`,
      why: "when it is full every offer is refused (OOM); due messages still move and can be taken",
      repair: `${redisCli(address, `CONFIG SET maxmemory ${limit * 2}`)} if the machine has the memory; look what else is in it: ${redisCli(address, "--bigkeys")}`,
    };
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

/** From here on it is time to act: the ready messages of an outage, and the rewriting of the file, need room. */
const FULL = 0.7;

const NEARLY_ALL = 0.95;
