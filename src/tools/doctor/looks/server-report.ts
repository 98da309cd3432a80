import { ServerClock } from "../../../time/server-clock.ts";
import type { SiteNode } from "./site.ts";

/** A server's description of itself, and the clock and round trip that its replies show. */
export interface ServerReport {
  /** "host:port", or the path of its socket. */
  readonly address: string;
  /** Its role in the Cluster; "master" for a single server. */
  readonly role: "master" | "slave";
  /** Whether the client is a Cluster client. */
  readonly isAskedAsCluster: boolean;
  /** The fields of `INFO`. */
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

/** Reads a server: about twenty short commands. Rejects if it does not reply. */
export async function readServer(node: SiteNode): Promise<ServerReport> {
  const info = parseInfo(await node.ask((redis) => redis.info()));
  const settings = await readConfig(node);
  return {
    address: node.address,
    role: node.role,
    isAskedAsCluster: node.site.isCluster,
    info,
    ...settings,
    ...(await readClock(node)),
  };
}

/** Parses the fields of a reply to `INFO` or `CLUSTER INFO`. */
export function parseInfo(text: string): Map<string, string> {
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
    const [sentAt, sentDate] = [performance.now(), Date.now()];
    const serverTime = ServerClock.fromTime(await node.ask((redis) => redis.time()));
    const trip = performance.now() - sentAt;
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

/** Round trips to measure. */
const ROUND_TRIPS = 7;
