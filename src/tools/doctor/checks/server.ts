import { messageOf } from "../../../failure.ts";
import type { ServerReport } from "../looks/server-report.ts";
import { checkConnections } from "./connections.ts";
import type { CheckName, Finding } from "./finding.ts";
import { checkMemory } from "./memory.ts";
import { checkPersistence } from "./persistence.ts";
import { checkReplication } from "./replication.ts";
import { checkTiming } from "./timing.ts";

/** Checks one server, by its description of itself. */
export function* checkServer(server: ServerReport): Generator<Finding> {
  yield* checkVersion(server);
  yield* checkClusterMode(server);
  if (server.configRefusal !== undefined) yield configHidden(server);
  yield* checkReplication(server);
  yield* checkTiming(server);
  // The settings of a replica do not matter until it becomes a master.
  if (server.info.get("role") === "slave") return;
  yield* checkPersistence(server);
  yield* checkMemory(server);
  yield* checkConnections(server);
}

/** Checks whether the server is new enough. */
function* checkVersion({ address, info }: ServerReport): Generator<Finding> {
  const version = info.get("redis_version") ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (version === "" || major > 6 || (major === 6 && minor >= 2)) return;
  yield {
    level: "error",
    check: "version",
    what: `${address} is Redis ${version}`,
    why: "the scripts need commands that came with Redis 6.2; older servers refuse them",
    repair: "upgrade to Redis 6.2 or later, or Valkey",
  };
}

function* checkClusterMode({ address, info, isAskedAsCluster }: ServerReport): Generator<Finding> {
  if (info.get("cluster_enabled") !== "1" || isAskedAsCluster) return;
  yield {
    level: "error",
    check: "cluster",
    what: `${address} is a node of a Cluster, but the client treats it as a single server`,
    why: "commands for queues in slots of other nodes are refused (MOVED), and failovers are not followed",
    repair:
      "with the command line, add --cluster; in code, pass an ioredis Cluster as `redis` in place of an address",
  };
}

function configHidden({ address, configRefusal }: ServerReport): Finding {
  return hidden(
    "config",
    `${address} does not show its settings: ${configRefusal}`,
    "appendfsync, save, timeout, tcp-keepalive, client-output-buffer-limit and min-replicas-to-write were not checked",
    /unknown command/i.test(configRefusal ?? "")
      ? "the command was renamed or removed (rename-command): read redis.conf, or the console of your Redis host"
      : "run the doctor as a user with +config|get, or read the settings in the console of your Redis host",
  );
}

/** Reports something that Redis does not show; `why` says what was therefore not checked. */
export function hidden(check: CheckName, what: string, why: string, repair: string): Finding {
  return { level: "notice", check, what, why, repair };
}

/** Reports a server that does not reply. */
export function unreachable(address: string | undefined, error: unknown): Finding {
  return {
    level: "error",
    check: "reachable",
    what: `${address ?? "Redis"} cannot be reached: ${messageOf(error as Error)}`,
    why: "nothing is offered, moved or taken there",
    repair: "check whether the server runs, and the address, password, TLS and maxclients",
  };
}
