import { ServerClock } from "../../time/server-clock.ts";
import type { SiteNode } from "./site.ts";

/** What a server says of itself. */
export interface ServerReport {
  /** As "host:port". */
  readonly address: string;
  /** What a Cluster takes it for; of a server that is alone "master". */
  readonly role: "master" | "slave";
  /** Whether the client that asked is a Cluster's. */
  readonly isAskedAsCluster: boolean;
  /** The fields of `INFO`. */
  readonly info: ReadonlyMap<string, string>;
  /** The settings that checks need; undefined if Redis does not tell them. */
  readonly config: ReadonlyMap<string, string> | undefined;
  /** Why Redis does not tell its settings. */
  readonly configRefusal: string | undefined;
  /** By how many milliseconds its clock is ahead of this machine's. */
  readonly clockOffset: number;
  /** How far from the truth `clockOffset` can be, in milliseconds. */
  readonly clockError: number;
  /** The fastest of several round trips, in milliseconds: what this process is slow with does not count. */
  readonly roundTrip: number;
}

/** Asks a server about itself: some thirty short commands. Rejects if it does not reply. */
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

/** The fields of a reply to `INFO`, or to `CLUSTER INFO`. */
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

/** One by one: Redis 6.2 takes one at a time, and all of them would have passwords among them. */
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
    // Date.now() cuts off what is below a millisecond.
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

const ROUND_TRIPS = 7;
