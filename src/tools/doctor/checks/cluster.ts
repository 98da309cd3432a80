import type { ClusterReport, ServerReport } from "../looks/server-report.ts";
import type { QueueReport } from "../looks/queue-report.ts";
import { redisCli, type Finding } from "./finding.ts";
import { formatCount, formatDuration } from "../../view/words.js";

const CHECK = "cluster";

/** Checks whether a Cluster serves all slots, and what happens when it does not. */
export function* checkCluster(
  { askedAt, info, nodes }: ClusterReport,
  servers: readonly ServerReport[],
): Generator<Finding> {
  const assigned = Number(info.get("cluster_slots_assigned") ?? 0);
  const failed = Number(info.get("cluster_slots_fail") ?? 0);
  const suspected = Number(info.get("cluster_slots_pfail") ?? 0);
  const whole = servers.some(
    ({ config }) => config?.get("cluster-require-full-coverage") === "yes",
  );
  if (assigned < SLOTS || failed > 0) {
    yield {
      level: "error",
      check: CHECK,
      what: `${SLOTS - assigned} slots belong to no node, ${failed} to a failed node; cluster_state is ${info.get("cluster_state")}`,
      why: whole
        ? "no node serves anything until all slots are covered (cluster-require-full-coverage yes): all queues stand still"
        : "the queues and partitions in these slots stand still",
      repair: `start the nodes that are down; if some are gone for good: ${redisCli(askedAt, `--cluster fix ${askedAt.address}`)}`,
    };
  } else if (suspected > 0) {
    yield {
      level: "warning",
      check: CHECK,
      what: `${suspected} slots belong to a node that does not reply to ${askedAt.address}`,
      why: "their queues stand still until it replies, or a replica replaces it",
      repair: `to see the nodes: ${redisCli(askedAt, "CLUSTER NODES")}`,
    };
  }
  for (const { id, address, flags } of nodes) {
    if (!flags.includes("fail") && !flags.includes("fail?")) continue;
    yield {
      level: "warning",
      check: CHECK,
      what: `${askedAt.address} reports the node ${address} as ${flags.join(", ")}`,
      why: "its slots have no replica, or nobody serves them",
      repair: `restart it, or remove it on every node: ${redisCli(askedAt, `CLUSTER FORGET ${id}`)}`,
    };
  }
  const alone = nodes.filter(
    ({ id, slotCount }) => slotCount > 0 && !nodes.some(({ masterId }) => masterId === id),
  );
  if (alone.length > 0) {
    yield {
      level: "notice",
      check: CHECK,
      what: `${alone.map(({ address }) => address).join(", ")} ${alone.length === 1 ? "has" : "have"} no replica`,
      why: whole
        ? "if one of them goes down, all queues stop (cluster-require-full-coverage yes)"
        : "if one of them goes down, the queues and partitions in its slots stop",
      repair:
        "start another server for each, and add it as a replica: redis-cli --cluster add-node, with --cluster-slave",
    };
  }
}

/** Checks how long a move of each slot of a queue blocks a master of a Cluster, if it is made key by key. */
export function* checkSlots({ name, parts }: QueueReport): Generator<Finding> {
  const big = parts
    .filter(({ site }) => site.isCluster)
    .map(({ delayed, inList, inStream, retries }) => delayed + inList + inStream + retries)
    .filter((messages) => messages >= BIG);
  if (big.length === 0) return;
  const most = Math.max(...big);
  yield {
    level: "notice",
    check: CHECK,
    queue: name,
    what: `${formatCount(most, "message")} are in one slot: moving it key by key (MIGRATE, as redis-cli --cluster reshard does) blocks a master for about ${formatDuration((most * MOVED) / 1000)}`,
    why: "nothing else is served meanwhile; if that takes longer than cluster-node-timeout, the master is replaced, or the Cluster stops",
    repair:
      "move its slot at once (CLUSTER MIGRATESLOTS in Valkey 9 and later, CLUSTER MIGRATION in Redis 8.4 and later), or when the queue is shorter; or give the queue more partitions, each of which is a slot: docs/operations/deploying.md",
  };
}

/** Microseconds for which a move blocks a master for each message. */
const MOVED = 14;

/** Messages in a slot from which on a move is felt: most of a second. */
const BIG = 50_000;

const SLOTS = 16_384;
