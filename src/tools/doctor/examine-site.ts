import { RedisError } from "../../errors.ts";
import { checkDatabase } from "../inspect/inspector.ts";
import { checkCluster } from "./checks/cluster.ts";
import type { Finding } from "./checks/finding.ts";
import { checkClocks, checkServer, hidden, unreachable } from "./checks/server.ts";
import type { SiteView } from "./looks/queue-report.ts";
import {
  listenersOf,
  readClients,
  readCluster,
  readServer,
  type ServerReport,
} from "./looks/server-report.ts";
import type { Site, SiteNode } from "./looks/site.ts";

/** Checks the servers behind one address. Returns undefined if none of them replies. */
export async function* examineSite(
  site: Site,
): AsyncGenerator<Finding, SiteView | undefined, void> {
  let nodes: SiteNode[];
  try {
    nodes = await site.nodes();
  } catch (error) {
    site.throwIfAborted();
    yield unreachable(undefined, error);
    yield* examineEntrances(site);
    return undefined;
  }
  const reached: SiteNode[] = [];
  const servers: ServerReport[] = [];
  for (const node of nodes) {
    try {
      const server = await readServer(node);
      yield* checkServer(server);
      servers.push(server);
      reached.push(node);
    } catch (error) {
      site.throwIfAborted();
      yield unreachable(node.address, error);
    }
  }
  const [first] = reached;
  if (first === undefined) return undefined;
  yield* checkClocks(servers);
  if (site.isCluster) yield* checkCluster(await readCluster(first), servers);
  const connections = await readClients(reached);
  if (connections === undefined) {
    yield hidden(
      "clients",
      `${first.address} does not list its connections (CLIENT LIST)`,
      "whether anybody takes from plain queues was not checked",
      "run the doctor as a user with +client|list; if CLIENT is renamed, remove that rename-command from redis.conf",
    );
  }
  if ((await listenersOf(reached, "delayline_doctor")) === undefined) {
    yield hidden(
      "clients",
      `${first.address} does not count its subscribers (PUBSUB NUMSUB)`,
      "whether any process moves the queues was not checked, except for overdue messages",
      "run the doctor as a user with +pubsub|numsub and the channels of the queues",
    );
  }
  return { site, nodes: reached, connections };
}

/** Asks the given nodes of a Cluster to which the client cannot connect. */
async function* examineEntrances(site: Site): AsyncGenerator<Finding, void, void> {
  const entrances = site.entrances();
  try {
    for (const node of entrances) {
      try {
        const server = await readServer(node);
        yield* checkServer(server);
        yield* checkCluster(await readCluster(node), [server]);
        // The other nodes would report the same.
        return;
      } catch (error) {
        site.throwIfAborted();
        yield unreachable(node.address, error);
      }
    }
  } finally {
    for (const node of entrances) node.end();
  }
}

/**
 * Checks whether the database that a URL names exists, and returns whether it does. Returns true if the server does not
 * reply: another check reports that.
 */
export async function* examineDatabase(
  url: string,
  timeout: number,
): AsyncGenerator<Finding, boolean, void> {
  try {
    await checkDatabase(url, timeout);
    return true;
  } catch (error) {
    if (!(error instanceof RedisError) || !ABOUT_DATABASE.test(error.message)) return true;
    yield {
      level: "error",
      check: "database",
      what: `${new URL(url).host}: ${error.message}`,
      why: "ioredis ignores the refusal, so processes with this URL work in database 0; no queue was checked",
      repair:
        "correct the number at the end of the URL, raise `databases` in redis.conf, or allow the user +select",
    };
    return false;
  }
}

/** Matches the replies to a SELECT that fails because of the database, the Cluster mode or the user. */
const ABOUT_DATABASE = /\bDB index\b|\bSELECT\b.*\bcluster\b|out of range|\bNOPERM\b.*\bselect\b/i;
