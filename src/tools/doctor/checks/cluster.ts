import type { ClusterReport, ServerReport } from "../looks/server-report.ts";
import { redisCli, type Finding } from "./finding.ts";

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

const SLOTS = 16_384;
