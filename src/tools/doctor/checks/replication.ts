import type { ServerReport } from "../looks/server-report.ts";
import type { Finding } from "./finding.ts";
import { redisCli } from "./repair.ts";

const CHECK = "replication";

/** Checks whether the server is a master, and whether its replicas follow. */
export function* checkReplication(server: ServerReport): Generator<Finding> {
  const isReplica = server.info.get("role") === "slave";
  if (isReplica) yield* checkReplica(server);
  else yield* checkMaster(server);
}

function* checkReplica({ address, role, info }: ServerReport): Generator<Finding> {
  const master = `${info.get("master_host")}:${info.get("master_port")}`;
  if (role === "master") {
    yield {
      level: "error",
      check: CHECK,
      what: `${address} is a replica of ${master}`,
      why: "it refuses every offer, move and take (READONLY)",
      repair: `give the address of the master, ${master}, or of the Sentinels`,
    };
  }
  if (info.get("master_link_status") === "down") {
    const seconds = info.get("master_link_down_since_seconds");
    yield {
      level: "warning",
      check: CHECK,
      what: `the replica ${address} has lost its master ${master}${seconds === undefined ? "" : `, for ${seconds} s`}`,
      why: "if the master dies now, what was offered since is lost",
      repair: `check the network between them, and masterauth; for details: ${redisCli(address, "INFO replication")}`,
    };
  }
}

function* checkMaster({ address, info, config }: ServerReport): Generator<Finding> {
  const replicas = replicasOf(info);
  for (const { name, state, lag } of replicas) {
    if (state === "online" && lag <= LONG_LAG) continue;
    yield {
      level: "warning",
      check: CHECK,
      what: `the replica ${name} of ${address} is ${state}, and last reported ${lag} s ago`,
      why: "if the master dies now, what was offered since is lost",
      repair: `check that server and the network; for details: ${redisCli(name, "INFO replication")}`,
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
      repair: `restart the replicas, or run ${redisCli(address, `CONFIG SET min-replicas-to-write ${good}`)}`,
    };
  }
  if (least === 0 && replicas.length > 0 && config !== undefined) {
    yield {
      level: "notice",
      check: CHECK,
      what: `${address} has ${replicas.length} replica${replicas.length === 1 ? "" : "s"}, and min-replicas-to-write is 0`,
      why: "a master that is cut off from its replicas still accepts offers; they are lost when a replica replaces it",
      repair: `${redisCli(address, "CONFIG SET min-replicas-to-write 1")}; ${redisCli(address, "CONFIG SET min-replicas-max-lag 2")}`,
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
