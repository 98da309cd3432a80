import { messageOf } from "../../failure.ts";
import type { ServerReport } from "../looks/server-report.ts";
import { checkConnections } from "./connections.ts";
import type { CheckName, Finding } from "./finding.ts";
import { checkMemory } from "./memory.ts";
import { checkPersistence } from "./persistence.ts";
import { checkReplication } from "./replication.ts";
import { checkTiming } from "./timing.ts";

/** All that is to be said about one server, as it describes itself. */
export function* checkServer(server: ServerReport): Generator<Finding> {
  yield* checkVersion(server);
  yield* checkClusterMode(server);
  if (server.configRefusal !== undefined) yield configHidden(server);
  yield* checkReplication(server);
  yield* checkTiming(server);
  // What becomes of a replica's memory and disk its master decides, until it takes its place.
  if (server.info.get("role") === "slave") return;
  yield* checkPersistence(server);
  yield* checkMemory(server);
  yield* checkConnections(server);
}

/** Whether it is new enough. */
function* checkVersion({ address, info }: ServerReport): Generator<Finding> {
  const version = info.get("redis_version") ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (version === "" || major > 6 || (major === 6 && minor >= 2)) return;
  yield {
    level: "error",
    check: "version",
    what: `${address} is Redis ${version}`,
    why: "scripts need commands that came with Redis 6.2, and are refused",
    repair: "upgrade to Redis 6.2 or later, or Valkey",
  };
}

function* checkClusterMode({ address, info, isAskedAsCluster }: ServerReport): Generator<Finding> {
  if (info.get("cluster_enabled") !== "1" || isAskedAsCluster) return;
  yield {
    level: "error",
    check: "cluster",
    what: `${address} is a node of a Cluster, and is asked as if it were alone`,
    why: "queues in slots of other nodes are refused (MOVED), and no failover is followed",
    repair: "give `redis` a Cluster of ioredis in place of an address",
  };
}

function configHidden({ address, configRefusal }: ServerReport): Finding {
  return hidden(
    "config",
    `${address} does not tell its settings: ${configRefusal}`,
    "appendfsync, save, timeout, tcp-keepalive, client-output-buffer-limit and min-replicas-to-write were not looked at",
    /unknown command/i.test(configRefusal ?? "")
      ? "the server does not have the command (rename-command): look at redis.conf, or in the console of whoever hosts Redis"
      : "run the doctor as a user with +config|get, or look at the settings in the console of whoever hosts Redis",
  );
}

/** Something that Redis does not let us look at; `why` says what was not checked. */
export function hidden(check: CheckName, what: string, why: string, repair: string): Finding {
  return { level: "notice", check, what, why, repair };
}

/** A server that cannot be asked. */
export function unreachable(address: string | undefined, error: unknown): Finding {
  return {
    level: "error",
    check: "reachable",
    what: `${address ?? "Redis"} cannot be asked: ${messageOf(error as Error)}`,
    why: "nothing is offered, moved or taken there",
    repair: "look whether the server runs, and at the address, the password, TLS and maxclients",
  };
}
