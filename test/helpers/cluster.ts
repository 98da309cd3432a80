import { Cluster, Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { eventually } from "./eventually.ts";
import { OwnServer } from "./own-server.ts";

const SLOTS = 16_384;

/** Starts a Redis Cluster of three masters for this test alone, and a client of it. */
export async function startCluster(): Promise<{ cluster: Cluster; nodes: OwnServer[] }> {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"];
  const nodes = await Promise.all([1, 2, 3].map(() => OwnServer.start({ args })));
  onTestFinished(async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  });
  const clients = nodes.map(({ port }) => new Redis(port, "127.0.0.1"));
  await Promise.all(
    clients.map(async (client, i) => {
      const from = Math.ceil((SLOTS * i) / clients.length);
      const to = Math.ceil((SLOTS * (i + 1)) / clients.length);
      await client.cluster("ADDSLOTS", ...Array.from({ length: to - from }, (_, k) => from + k));
      // The default bus port, the server's port plus 10000, is free where the server's port is low.
      for (const { port } of nodes) await client.cluster("MEET", "127.0.0.1", port);
    }),
  );
  await eventually(
    async () => {
      for (const client of clients) {
        const info = await client.cluster("INFO");
        if (!info.includes("cluster_state:ok") || !info.includes("cluster_known_nodes:3"))
          return false;
      }
      return true;
    },
    { within: 30_000, what: "the cluster is up" },
  );
  for (const client of clients) client.disconnect();
  const cluster = new Cluster(nodes.map(({ port }) => ({ host: "127.0.0.1", port })));
  onTestFinished(() => cluster.disconnect());
  return { cluster, nodes };
}
