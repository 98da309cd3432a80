import { networkTime, replyOf } from "../../../inside.ts";
import type { Endpoint, SiteNode } from "./site.ts";

/** A server's description of itself, and the clock and round trip that its replies show. */
export interface ServerReport extends Endpoint {
  /** Its role in the Cluster; "master" for a single server. */
  readonly role: "master" | "slave";
  /** Whether the client is a Cluster client. */
  readonly isAskedAsCluster: boolean;
  /** The fields of `INFO`, with those of the section `scriptingengines`. */
  readonly info: ReadonlyMap<string, string>;
  /** The settings that the checks need; undefined if Redis refuses to show them. */
  readonly config: ReadonlyMap<string, string> | undefined;
  /** Why Redis refuses to show its settings. */
  readonly configRefusal: string | undefined;
  /** Milliseconds by which its clock is ahead of this machine's. */
  readonly clockOffset: number;
  /** Milliseconds by which `clockOffset` may be wrong. */
  readonly clockError: number;
  /** The fastest of several round trips (milliseconds), so that delays of this process do not count. */
  readonly roundTrip: number;
}

/** What a server says of itself to a client that it may not serve. */
export interface EntranceReport {
  /** The fields of `INFO`. */
  readonly info: ReadonlyMap<string, string>;
  /** The masters that it watches, if it is a Sentinel. */
  readonly masters: readonly { readonly name: string; readonly address: string }[] | undefined;
}

/** Reads what every server says: a Sentinel, and one that loads its data, as well. Rejects with its refusal. */
export async function readEntrance(node: SiteNode): Promise<EntranceReport> {
  const info = parseInfo(await node.ask((redis) => redis.info()));
  if ((info.get("redis_mode") ?? info.get("server_mode")) !== "sentinel")
    return { info, masters: undefined };
  const replies = await node
    .ask((redis) => redis.call("SENTINEL", "MASTERS") as Promise<string[][]>)
    .catch(() => []);
  const masters = replies.map((fields) => {
    const of = (name: string) => fields[fields.indexOf(name) + 1] ?? "";
    return { name: of("name"), address: `${of("ip")}:${of("port")}` };
  });
  return { info, masters };
}

/** Reads a server: about twenty short commands. Rejects if it does not reply. */
export async function readServer(node: SiteNode): Promise<ServerReport> {
  const info = parseInfo(await node.ask((redis) => redis.info()));
  const engines = parseInfo(await node.ask((redis) => redis.info("scriptingengines")));
  const settings = await readConfig(node);
  return {
    address: node.address,
    user: node.user,
    tls: node.tls,
    role: node.role,
    isAskedAsCluster: node.site.isCluster,
    info: new Map([...info, ...engines]),
    ...settings,
    ...(await readClock(node).catch((error: unknown) => {
      // Another finding names the missing right.
      if (replyOf(error) === "NOPERM") return UNKNOWN_CLOCK;
      throw error;
    })),
  };
}

/** Parses the fields of a reply to `INFO` or `CLUSTER INFO`. */
function parseInfo(text: string): Map<string, string> {
  const fields = text
    .split(/\r?\n/)
    .filter((line) => !line.startsWith("#") && line.includes(":"))
    .map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    });
  return new Map(fields);
}

async function readConfig(node: SiteNode): Promise<Pick<ServerReport, "config" | "configRefusal">> {
  const config = new Map<string, string>();
  for (const setting of SETTINGS) {
    try {
      const [, value] = await node.ask((redis) => redis.config("GET", setting));
      if (value !== undefined) config.set(setting, value);
    } catch (error) {
      return { config: undefined, configRefusal: (error as Error).message };
    }
  }
  return { config, configRefusal: undefined };
}

/** Read one by one: Redis 6.2 accepts one name at a time, and `CONFIG GET *` would return passwords too. */
const SETTINGS = [
  "save",
  "appendfsync",
  "stop-writes-on-bgsave-error",
  "timeout",
  "tcp-keepalive",
  "maxclients",
  "min-replicas-to-write",
  "client-output-buffer-limit",
  "cluster-require-full-coverage",
];

async function readClock(
  node: SiteNode,
): Promise<Pick<ServerReport, "clockOffset" | "clockError" | "roundTrip">> {
  const trips: number[] = [];
  let [least, most] = [-Infinity, Infinity];
  for (let i = 0; i < ROUND_TRIPS; i++) {
    // Date.now() truncates to a millisecond, hence the 1 below.
    const [sentAt, sentDate] = [networkTime.now(), Date.now()];
    const [seconds, micros] = await node.ask((redis) => redis.time());
    const serverTime = Number(seconds) * 1000 + Number(micros) / 1000;
    const trip = networkTime.now() - sentAt;
    trips.push(trip);
    least = Math.max(least, serverTime - sentDate - trip - 1);
    most = Math.min(most, serverTime - sentDate);
  }
  return {
    clockOffset: (least + most) / 2,
    clockError: Math.abs(most - least) / 2,
    roundTrip: Math.min(...trips),
  };
}

const UNKNOWN_CLOCK = { clockOffset: 0, clockError: Infinity, roundTrip: 0 } as const;

/** Round trips to measure. */
const ROUND_TRIPS = 7;

/** A Cluster, as one of its nodes sees it. */
export interface ClusterReport {
  /** The node that was asked. */
  readonly askedAt: Endpoint;
  /** The fields of `CLUSTER INFO`. */
  readonly info: ReadonlyMap<string, string>;
  readonly nodes: readonly ClusterNode[];
}

/** A node, as another node sees it. */
interface ClusterNode {
  readonly id: string;
  /** "host:port". */
  readonly address: string;
  /** For example `master`, `slave`, `fail`, `fail?`. */
  readonly flags: readonly string[];
  /** The id of a replica's master; undefined for a master. */
  readonly masterId: string | undefined;
  readonly slotCount: number;
}

/** Asks one node about the Cluster. */
export async function readCluster(node: SiteNode): Promise<ClusterReport> {
  const info = await node.ask((redis) => redis.cluster("INFO"));
  const nodes = await node.ask((redis) => redis.cluster("NODES"));
  return {
    askedAt: node,
    info: parseInfo(info),
    nodes: (nodes as string)
      .split("\n")
      .filter((line) => line !== "")
      .map(asNode),
  };
}

/** `<id> 10.0.0.7:6379@16379,name myself,master - 0 0 1 connected 0-5460 [1->-other]` */
function asNode(line: string): ClusterNode {
  const [id = "", address = "", flags = "", master, , , , , ...slots] = line.split(" ");
  const slotCount = slots
    .filter((range) => !range.startsWith("["))
    .map((range) => range.split("-").map(Number))
    .reduce((sum, [from = 0, to = from]) => sum + to - from + 1, 0);
  return {
    id,
    address: address.replace(/@.*$/, ""),
    flags: flags.split(",").filter((flag) => flag !== "myself"),
    masterId: master === "-" ? undefined : master,
    slotCount,
  };
}

/** A connection in the reply to `CLIENT LIST`. */
export interface ClientConnection {
  /** The name of the connection; empty if it has none. */
  readonly name: string;
  readonly user: string;
  /** "host:port" of its process. */
  readonly address: string;
  /** Its last command, such as `blpop`. */
  readonly command: string;
  readonly isBlocked: boolean;
  /** The number of its database. */
  readonly database: number;
  /** Milliseconds since its last command. */
  readonly idle: number;
  /** What this library's names tell, such as `blocking` for `orders` with `keyPrefix` `shop:`. Undefined for others. */
  readonly own:
    { readonly role: string; readonly key: string; readonly keyPrefix: string } | undefined;
}

/** The connections to some servers; undefined if one of them does not list its connections. */
export async function readClients(
  nodes: readonly SiteNode[],
): Promise<ClientConnection[] | undefined> {
  try {
    const lists = await Promise.all(
      nodes.map((node) => node.ask((redis) => redis.client("LIST") as Promise<string>)),
    );
    return lists.flatMap((list) => list.split("\n").filter(Boolean).map(asConnection));
  } catch {
    return undefined;
  }
}

/** Those of the connections of this library that wait, or have waited, for messages at one of the keys. */
export function takersAt(
  connections: readonly ClientConnection[],
  keys: readonly string[],
): ClientConnection[] {
  return connections.filter(({ own }) => own?.role === "blocking" && keys.includes(own.key));
}

/**
 * How many are blocked and have no name of this library: connections of Java or other programs. Redis does not say at
 * which key.
 */
export function strangersIn(connections: readonly ClientConnection[]): number {
  return connections.filter(({ isBlocked, own }) => isBlocked && own === undefined).length;
}

/** Those that are the subscribers of this library. */
export function subscribersIn(connections: readonly ClientConnection[]): ClientConnection[] {
  return connections.filter(({ own }) => own?.role === "subscriber");
}

/** How many connections are subscribed to a channel; undefined if a server does not say. */
export async function listenersOf(
  nodes: readonly SiteNode[],
  channel: string,
): Promise<number | undefined> {
  try {
    const counts = await Promise.all(
      nodes.map(async (node) => {
        const [, number] = await node.ask((redis) => redis.pubsub("NUMSUB", channel));
        return Number(number);
      }),
    );
    return counts.reduce((sum, one) => sum + one, 0);
  } catch {
    return undefined;
  }
}

function asConnection(line: string): ClientConnection {
  const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S*)`).exec(line)?.[1] ?? "";
  const name = field("name");
  const [, role, key = "", keyPrefix = ""] =
    /^delayline:(\w+)(?::([^:@]*))?[^@]*(?:@(.*))?$/.exec(name) ?? [];
  return {
    name,
    user: field("user"),
    address: field("addr"),
    command: field("cmd"),
    isBlocked: field("flags").includes("b"),
    database: Number(field("db")),
    idle: Number(field("idle")) * 1000,
    own: role === undefined ? undefined : { role, key: decode(key), keyPrefix: decode(keyPrefix) },
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
