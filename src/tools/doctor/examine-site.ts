import { causeOf } from "../../inside.ts";
import { checkCluster } from "./checks/cluster.ts";
import type { CommandLine, Finding } from "./checks/finding.ts";
import { checkClocks, checkServer, checkUsable, hidden, unreachable } from "./checks/server.ts";
import type { SiteView } from "./looks/queue-report.ts";
import {
  listenersOf,
  readClients,
  readCluster,
  readEntrance,
  readServer,
  type ServerReport,
} from "./looks/server-report.ts";
import type { Site, SiteNode } from "./looks/site.ts";

/** Checks the servers behind one address. Returns undefined if none of them replies. */
export async function* examineSite(
  site: Site,
  commandLine: CommandLine,
): AsyncGenerator<Finding, SiteView | undefined, void> {
  let nodes: SiteNode[];
  try {
    nodes = await site.nodes();
  } catch (error) {
    site.throwIfAborted();
    yield await explain(site, error, commandLine);
    yield* examineEntrances(site, commandLine);
    return undefined;
  }
  const reached: SiteNode[] = [];
  const servers: ServerReport[] = [];
  for (const node of nodes) {
    try {
      const unusable = checkUsable(node, await readEntrance(node), commandLine);
      if (unusable !== undefined) {
        yield unusable;
        continue;
      }
      const server = await readServer(node);
      yield* checkServer(server, commandLine);
      servers.push(server);
      reached.push(node);
    } catch (error) {
      site.throwIfAborted();
      yield unreachable(node, error);
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

/** Finds out why a server does not serve the client. `failure` is what the client knows. */
async function explain(site: Site, failure: unknown, commandLine: CommandLine): Promise<Finding> {
  const node = site.entrance();
  if (node === undefined) return unreachable(undefined, failure);
  try {
    const view = await readEntrance(node);
    return checkUsable(node, view, commandLine) ?? unreachable(node, failure);
  } catch (error) {
    site.throwIfAborted();
    // If it cannot be reached, the client knows better why.
    return unreachable(node, causeOf(failure) === undefined ? error : failure);
  } finally {
    node.end();
  }
}

/** Asks the given nodes of a Cluster to which the client cannot connect. */
async function* examineEntrances(
  site: Site,
  commandLine: CommandLine,
): AsyncGenerator<Finding, void, void> {
  const entrances = site.entrances();
  try {
    for (const node of entrances) {
      try {
        const server = await readServer(node);
        yield* checkServer(server, commandLine);
        yield* checkCluster(await readCluster(node), [server]);
        // The other nodes would report the same.
        return;
      } catch (error) {
        site.throwIfAborted();
        yield unreachable(node, error);
      }
    }
  } finally {
    for (const node of entrances) node.end();
  }
}
