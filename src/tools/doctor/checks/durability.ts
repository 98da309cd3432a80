import type { ServerReport } from "../looks/server-report.ts";
import { redisCli, setConfig, type Finding } from "./finding.ts";
import { formatDuration } from "../../view/words.js";

/** Checks whether messages are on disk, and whether Redis can write there. */
export function* checkPersistence(server: ServerReport): Generator<Finding> {
  const { address, info, config } = server;
  const check = "persistence";
  const hasAof = info.get("aof_enabled") === "1";
  const saves = config?.get("save");
  const repair = `turn the append-only file on: ${setConfig(server, "appendonly yes")}`;
  if (!hasAof && saves === "") {
    yield {
      level: "error",
      check,
      what: `${address} keeps nothing on disk: appendonly is no, and save is empty`,
      why: "messages are in memory only: a restart loses all of them",
      repair,
    };
  } else if (!hasAof) {
    yield {
      level: "warning",
      check,
      what: `${address} has no append-only file${saves === undefined ? "" : `, only snapshots (save ${saves})`}`,
      why: "a crash loses what was offered since the last snapshot, and delivers again what was taken since",
      repair,
    };
  }
  if (hasAof && config?.get("appendfsync") === "no") {
    yield {
      level: "warning",
      check,
      what: `${address} has appendfsync no`,
      why: "a crash of the machine loses what its kernel has not written to disk yet: half a minute or more",
      repair: setConfig(server, "appendfsync everysec"),
    };
  }
  yield* checkWriting(server);
}

/** Checks whether the last writes to disk succeeded. */
function* checkWriting(server: ServerReport): Generator<Finding> {
  const { address, info, config } = server;
  const check = "persistence";
  const refuses = config?.get("stop-writes-on-bgsave-error") !== "no";
  const saves = config?.get("save") !== "";
  const free =
    "free space on its disk, and check the permissions of its directory (its log says what fails)";
  if (info.get("rdb_last_bgsave_status") === "err") {
    yield {
      level: refuses && saves ? "error" : "warning",
      check,
      what: `the last snapshot of ${address} failed`,
      why:
        refuses && saves
          ? "Redis refuses every write until a snapshot succeeds (MISCONF): nothing is offered, moved or taken"
          : "the copy on disk is old, and a replica may fail to synchronize",
      repair: `${free}; then ${redisCli(server, "BGSAVE")}`,
    };
  }
  if (info.get("aof_last_write_status") === "err") {
    yield {
      level: "error",
      check,
      what: `the last write of ${address} to its append-only file failed`,
      why: "Redis refuses every write until one succeeds (MISCONF): nothing is offered, moved or taken",
      repair: `${free}: Redis tries again every second`,
    };
  }
  if (info.get("aof_last_bgrewrite_status") === "err") {
    yield {
      level: "warning",
      check,
      what: `the last rewrite of the append-only file of ${address} failed`,
      why: "the file grows until the disk is full; then Redis refuses every write",
      repair: `${free}; then ${redisCli(server, "BGREWRITEAOF")}`,
    };
  }
}

const CHECK = "replication";

/** Checks whether the server is a master, and whether its replicas follow. */
export function* checkReplication(server: ServerReport): Generator<Finding> {
  const isReplica = server.info.get("role") === "slave";
  if (isReplica) yield* checkReplica(server);
  else yield* checkMaster(server);
}

function* checkReplica(server: ServerReport): Generator<Finding> {
  const { address, role, info } = server;
  const master = `${info.get("master_host")}:${info.get("master_port")}`;
  if (role === "master") {
    yield {
      level: "error",
      check: CHECK,
      what: `${address} is a replica of ${master}`,
      why: "it refuses every offer, move and take (READONLY)",
      repair: `give the address of the master, ${master}, or of the Sentinels; if this server is to be the master: ${redisCli(server, "REPLICAOF NO ONE")}`,
    };
  }
  if (info.get("master_link_status") === "down") {
    const seconds = Number(info.get("master_link_down_since_seconds") ?? -1);
    yield {
      level: "warning",
      check: CHECK,
      // Redis says -1 if there never was a connection.
      what:
        seconds < 0
          ? `the replica ${address} has no connection to its master ${master}`
          : `the replica ${address} has lost its master ${master}, ${formatDuration(seconds * 1000)} ago`,
      why: "if the master dies now, what was offered since is lost",
      repair: `check the network between them, and masterauth; for details: ${redisCli(server, "INFO replication")}`,
    };
  }
}

function* checkMaster(server: ServerReport): Generator<Finding> {
  const { address, info, config } = server;
  const replicas = replicasOf(info);
  for (const { name, state, lag } of replicas) {
    if (state === "online" && lag <= LONG_LAG) continue;
    yield {
      level: "warning",
      check: CHECK,
      what: `the replica ${name} of ${address} is ${state}, and last reported ${lag} s ago`,
      why: "if the master dies now, what was offered since is lost",
      repair: `check that server and the network; for details: ${redisCli({ ...server, address: name }, "INFO replication")}`,
    };
  }
  const least = Number(config?.get("min-replicas-to-write") ?? 0);
  const good = Number(info.get("min_slaves_good_slaves") ?? replicas.length);
  if (least > 0 && good < least) {
    yield {
      level: "error",
      check: CHECK,
      what: `${address} requires ${least} replicas in sync (min-replicas-to-write), and has ${good}`,
      why: "it refuses every write (NOREPLICAS): nothing is offered, moved or taken",
      repair: `restart the replicas, or: ${setConfig(server, `min-replicas-to-write ${good}`)}`,
    };
  }
  if (least === 0 && replicas.length > 0 && config !== undefined) {
    yield {
      level: "notice",
      check: CHECK,
      what: `${address} has ${replicas.length} replica${replicas.length === 1 ? "" : "s"}, and min-replicas-to-write is 0`,
      why: "a master that is cut off from its replicas still accepts offers; they are lost when a replica replaces it",
      repair: setConfig(server, "min-replicas-to-write 1", "min-replicas-max-lag 2"),
    };
  }
}

/** `slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=0` */
function replicasOf(
  info: ReadonlyMap<string, string>,
): { readonly name: string; readonly state: string; readonly lag: number }[] {
  return [...info]
    .filter(([field]) => /^slave\d+$/.test(field))
    .map(([, value]) => {
      const fields = new Map(
        value.split(",").map((part) => part.split("=", 2) as [string, string]),
      );
      return {
        name: `${fields.get("ip")}:${fields.get("port")}`,
        state: fields.get("state") ?? "unknown",
        lag: Number(fields.get("lag") ?? 0),
      };
    });
}

/** Seconds. A replica reports every second. */
const LONG_LAG = 10;
