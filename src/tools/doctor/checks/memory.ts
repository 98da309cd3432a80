import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";

/** Checks what Redis does when its memory is full, and how full it is. */
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
        ? "when its memory is full, Redis deletes whole queues"
        : "when its memory is full, Redis deletes keys that expire: the members of partitioned queues, and the receipts that keep a message from being given back twice",
      repair: redisCli(address, "CONFIG SET maxmemory-policy noeviction"),
    };
  }
  if (limit > 0 && used > limit * FULL) {
    const isFull = used > limit * NEARLY_ALL;
    yield {
      level: isFull ? "error" : "warning",
      check: "memory",
      what: `${address} uses ${megabytes(used)} of maxmemory ${megabytes(limit)}, ${Math.floor((100 * used) / limit)} %`,
      why: "once its memory is full, Redis refuses every offer (OOM); due messages still move and can be taken",
      repair: `${redisCli(address, `CONFIG SET maxmemory ${limit * 2}`)} if the machine has the memory; to find what else takes it: ${redisCli(address, "--bigkeys")}`,
    };
  }
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}

/**
 * The share from which it is time to act: the backlog of an outage, and the rewrite of the append-only file, need room.
 */
const FULL = 0.7;

const NEARLY_ALL = 0.95;
