import { checkCluster } from "./checks/cluster.ts";
import type { Finding } from "./checks/finding.ts";
import { checkServer, hidden, unreachable } from "./checks/server.ts";
import { checkClocks } from "./checks/timing.ts";
import { listenersOf, readClients } from "./looks/clients.ts";
import { readCluster } from "./looks/cluster-report.ts";
import type { Place } from "./looks/queue-report.ts";
import { readServer, type ServerReport } from "./looks/server-report.ts";
import type { Site, SiteNode } from "./looks/site.ts";

/** Looks at the servers behind one address. Returns undefined if none of them can be asked. */
export async function* examineSite(site: Site): AsyncGenerator<Finding, Place | undefined, void> {
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
      `${first.address} does not tell who is connected (CLIENT LIST)`,
      "whether anybody takes from plain queues was not looked at",
      "run the doctor as a user with +client|list; where CLIENT is renamed, remove that rename-command from redis.conf",
    );
  }
  if ((await listenersOf(reached, "delayline_doctor")) === undefined) {
    yield hidden(
      "clients",
      `${first.address} does not tell who has subscribed (PUBSUB NUMSUB)`,
      "whether anybody moves the queues was not looked at, but for what is overdue",
      "run the doctor as a user with +pubsub|numsub and the channels of the queues",
    );
  }
  return { site, nodes: reached, connections };
}

/** Asks the nodes of a Cluster that lets nobody in. */
async function* examineEntrances(site: Site): AsyncGenerator<Finding, void, void> {
  const entrances = site.entrances();
  try {
    for (const node of entrances) {
      try {
        const server = await readServer(node);
        yield* checkServer(server);
        yield* checkCluster(await readCluster(node), [server]);
        // The others would say the same.
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
