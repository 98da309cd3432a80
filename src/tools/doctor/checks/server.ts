import { causeOf, messageOf, type Cause } from "../../../inside.ts";
import type { EntranceReport, ServerReport } from "../looks/server-report.ts";
import type { Endpoint } from "../looks/site.ts";
import { checkPersistence, checkReplication } from "./durability.ts";
import {
  inBackticks,
  redisCli,
  lacksConfig,
  PROVIDED,
  setConfig,
  type CheckName,
  type CommandLine,
  type Finding,
} from "./finding.ts";
import { formatDuration } from "../../view/words.js";

/** Checks one server, by its description of itself. */
export function* checkServer(server: ServerReport, commandLine: CommandLine): Generator<Finding> {
  yield* checkVersion(server);
  yield* checkLua(server);
  yield* checkClusterMode(server, commandLine);
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

/** Checks whether the server runs Lua, which is a module of Valkey 9.1 and later. */
function* checkLua({ address, info }: ServerReport): Generator<Finding> {
  // `engine_0:name=LUA,module=lua,...`; other servers know no engines, and always have Lua.
  const [count, engine] = [info.get("engines_count"), /^name=lua,/i];
  if (count === undefined || [...info.values()].some((value) => engine.test(value))) return;
  yield {
    level: "error",
    check: "scripts",
    what: `${address} has no Lua`,
    why: "every move of a message is a script: nothing is offered, moved or taken",
    repair:
      "load the engine: loadmodule in valkey.conf, with the path of Valkey's module for Lua; or use a build that has it",
  };
}

function* checkClusterMode(
  { address, info, isAskedAsCluster }: ServerReport,
  commandLine: CommandLine,
): Generator<Finding> {
  if (info.get("cluster_enabled") !== "1" || isAskedAsCluster) return;
  yield {
    level: "error",
    check: "cluster",
    what: `${address} is a node of a Cluster, but the client treats it as a single server`,
    why: "commands for queues in slots of other nodes are refused (MOVED), and failovers are not followed",
    repair: `examine it as a Cluster: ${commandLine("doctor", ["--cluster"])}; in code, pass an ioredis Cluster as \`redis\` in place of an address`,
  };
}

function configHidden(server: ServerReport): Finding {
  const { address, configRefusal } = server;
  return hidden(
    "config",
    `${address} does not show its settings: ${configRefusal}`,
    "appendfsync, save, timeout, tcp-keepalive, client-output-buffer-limit and min-replicas-to-write were not checked",
    lacksConfig(server)
      ? `the command was renamed or removed, as most providers do: read them ${PROVIDED}`
      : "run the doctor as a user with +config|get, or read the settings in the console of your Redis host",
  );
}

/** Reports something that Redis does not show; `why` says what was therefore not checked. */
export function hidden(check: CheckName, what: string, why: string, repair: string): Finding {
  return { level: "notice", check, what, why, repair };
}

/** Reports a server that does not reply, or refuses whatever it is asked. */
export function unreachable(endpoint: Endpoint | undefined, error: unknown): Finding {
  const { address = "Redis" } = endpoint ?? {};
  const cause = causeOf(error);
  const text = messageOf(error as Error);
  if (cause === undefined) {
    return {
      level: "error",
      check: "reachable",
      what: `${address} cannot be reached: ${text}`,
      why: STOPPED,
      repair: "check whether the server runs, and the address, password, TLS and maxclients",
    };
  }
  const [, reply] = /(?:^|: )([A-Z]{4,}) /.exec(text) ?? [];
  const isReply = reply !== undefined && cause.kind !== "connections";
  return {
    level: "error",
    check: cause.kind === "database" ? "database" : isReply ? "usable" : "reachable",
    what: `${address} ${cause.what}${isReply ? ` (${reply})` : ""}`,
    why: STOPPED,
    repair: `${commandFor(cause, endpoint, text)}${cause.repair}`,
  };
}

const STOPPED = "nothing is offered, moved or taken there; nothing else could be examined";

/** The command that repairs a cause, if there is one. */
function commandFor({ kind }: Cause, endpoint: Endpoint | undefined, text: string): string {
  if (kind !== "busy" || endpoint === undefined) return "";
  const command = text.includes("FUNCTION KILL") ? "FUNCTION KILL" : "SCRIPT KILL";
  return `${redisCli(endpoint, command)}; `;
}

/** Reports a server that cannot be used although it replies to `INFO`; undefined if it can. */
export function checkUsable(
  endpoint: Endpoint,
  view: EntranceReport,
  commandLine: CommandLine,
): Finding | undefined {
  const { address } = endpoint;
  if (view.masters !== undefined) {
    const [master] = view.masters;
    return {
      level: "error",
      check: "usable",
      what: `${address} is a Sentinel, which knows where Redis is and holds no data`,
      why: STOPPED,
      repair:
        master === undefined
          ? "it watches no master: give the address of Redis itself"
          : `give the Sentinels and the name of their master: ${commandLine("doctor", ["--sentinel", master.name])}; in code: redis: { sentinels: [{ host, port }], name: ${JSON.stringify(master.name)} }. The master is ${master.address} now`,
    };
  }
  if (view.info.get("loading") !== "1") return undefined;
  const eta = Number(view.info.get("loading_eta_seconds") ?? 0);
  return {
    level: "error",
    check: "usable",
    what: `${address} is loading its data, and serves nobody until that is done (LOADING)`,
    why: STOPPED,
    repair: `wait: calls are sent again meanwhile${eta > 0 ? `; Redis expects it to take ${formatDuration(eta * 1000)} more` : ""}; then run the doctor again`,
  };
}

/** Checks the clock of a server, and how long it takes to reply. */
function* checkTiming(server: ServerReport): Generator<Finding> {
  const { address, clockOffset, clockError, roundTrip } = server;
  if (Math.abs(clockOffset) - clockError > FAR_OFF) {
    yield {
      level: "warning",
      check: "clock",
      what: `the clock of ${address} is ${formatDuration(Math.abs(clockOffset))} ${clockOffset > 0 ? "ahead of" : "behind"} the clock of this machine`,
      why: "delays count on the server's clock and stay right; dates (offerAt), and everything that Java offers or moves, are early or late by as much",
      repair:
        "let both machines follow the same time server (chrony, ntpd), slewing their clocks; then run the doctor again",
    };
  }
  if (roundTrip > SLOW) {
    yield {
      level: "warning",
      check: "latency",
      what: `${address} replies after ${roundTrip.toFixed(1)} ms (the fastest of several commands)`,
      why: "every message is late by at least a round trip, and a worker that takes messages one by one takes at most one per round trip",
      repair: `run the workers close to Redis; to see whether Redis itself is slow: ${redisCli(server, "SLOWLOG GET 10")}, and on its machine ${inBackticks("redis-cli --intrinsic-latency 5")}`,
    };
  }
}

/** Checks whether the clocks of several servers agree. */
export function* checkClocks(servers: readonly ServerReport[]): Generator<Finding> {
  const sorted = servers.toSorted((a, b) => a.clockOffset - b.clockOffset);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (first === undefined || last === undefined) return;
  const difference = last.clockOffset - first.clockOffset;
  if (difference - first.clockError - last.clockError <= FAR_OFF) return;
  yield {
    level: "warning",
    check: "clock",
    what: `the clock of ${last.address} is ${formatDuration(difference)} ahead of the clock of ${first.address}`,
    why: "after a failover, or when a message moves to another partition, its deadline is early or late by as much",
    repair: "let all servers follow the same time server (chrony, ntpd), slewing their clocks",
  };
}

/** Milliseconds by which clocks may differ. */
const FAR_OFF = 1000;

/** Milliseconds that a round trip may take. */
const SLOW = 20;

/** Checks what Redis does when its memory is full, and how full it is. */
function* checkMemory(server: ServerReport): Generator<Finding> {
  const { address, info } = server;
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
      repair: setConfig(server, "maxmemory-policy noeviction"),
    };
  }
  if (limit > 0 && used > limit * FULL) {
    const isFull = used > limit * NEARLY_ALL;
    yield {
      level: isFull ? "error" : "warning",
      check: "memory",
      what: `${address} uses ${megabytes(used)} of maxmemory ${megabytes(limit)}, ${Math.floor((100 * used) / limit)} %`,
      why: "once its memory is full, Redis refuses every offer (OOM); due messages still move and can be taken",
      repair: `if the machine has the memory: ${setConfig(server, `maxmemory ${2 * Math.max(limit, used)}`)}; to find what else takes it: ${redisCli(server, "--bigkeys")}`,
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

/** Checks how Redis treats connections, and whether it has room for more. */
function* checkConnections(server: ServerReport): Generator<Finding> {
  yield* checkTimeouts(server);
  yield* checkCount(server);
  yield* checkBuffers(server);
}

function* checkTimeouts(server: ServerReport): Generator<Finding> {
  const { address, config } = server;
  const timeout = Number(config?.get("timeout") ?? 0);
  if (timeout > 0 && timeout < LONG_TIMEOUT) {
    yield {
      level: "warning",
      check: "timeout",
      what: `${address} closes connections that are idle for ${timeout} s (timeout)`,
      why: "a client that you lend, or one that only offers, loses its connection between two calls; whether a call on its way was carried out is then unknown",
      repair: setConfig(server, "timeout 0"),
    };
  }
  if (config?.get("tcp-keepalive") === "0") {
    yield {
      level: "warning",
      check: "tcp-keepalive",
      what: `${address} never checks whether a client is still there (tcp-keepalive 0)`,
      why: "connections of vanished machines stay forever: they count towards maxclients, and one that blocks may swallow a message",
      repair: setConfig(server, "tcp-keepalive 60"),
    };
  }
}

function* checkCount(server: ServerReport): Generator<Finding> {
  const { address, info, config } = server;
  const most = Number(config?.get("maxclients") ?? info.get("maxclients") ?? 0);
  const count = Number(info.get("connected_clients") ?? 0);
  if (most === 0 || count < most * CROWDED) return;
  yield {
    level: "warning",
    check: "maxclients",
    what: `${address} has ${count} connections of ${most} (maxclients)`,
    why: "at the limit, a process that starts or reconnects is refused: it takes and moves nothing",
    repair: `${setConfig(server, `maxclients ${Math.max(10_000, most * 2)}`)}; to see who holds them: ${redisCli(server, "CLIENT LIST")}`,
  };
}

function* checkBuffers(server: ServerReport): Generator<Finding> {
  const { address, config } = server;
  const text = config?.get("client-output-buffer-limit") ?? "";
  for (const [, kind = "", hard = "0", soft = "0"] of text.matchAll(/(\w+) (\d+) (\d+) \d+/g)) {
    const least = LEAST_BUFFER[kind];
    const limits = [Number(hard), Number(soft)].filter((limit) => limit > 0);
    const smallest = Math.min(...limits);
    if (least === undefined || smallest >= least) continue;
    yield {
      level: "warning",
      check: "output-buffer",
      what: `${address} disconnects ${kind} clients with more than ${smallest} bytes of unsent output (client-output-buffer-limit)`,
      why:
        kind === "pubsub"
          ? "a burst of wake-ups disconnects the process that moves messages; they are late until it has reconnected"
          : "a page of 100 large messages disconnects its reader, and a take loses its messages with the connection",
      repair: setConfig(
        server,
        `client-output-buffer-limit '${kind === "pubsub" ? "pubsub 33554432 8388608 60" : "normal 0 0 0"}'`,
      ),
    };
  }
}

/**
 * Bytes that each kind of client may be sent in a burst: a wake-up has about a hundred, a message at most a mebibyte.
 */
const LEAST_BUFFER: Readonly<Record<string, number>> = { pubsub: 2 ** 20, normal: 2 ** 26 };

/** Seconds. The connections of this library are idle for a minute at most. */
const LONG_TIMEOUT = 70;

/** The share of `maxclients` from which there is hardly room for more. */
const CROWDED = 0.8;
