import { Cluster, type NatMap } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { nodeOf } from "../../../src/redis/cluster-node.ts";
import { moveSlotOf, startCluster } from "../../helpers/cluster.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("where addresses are translated, the master of a key is found after a redirection", async () => {
  const { nodes } = await startCluster();
  const table = Object.fromEntries(
    nodes.map(({ port }) => [`127.0.0.1:${port}`, { host: "localhost", port }]),
  );
  const natMaps: NatMap[] = [table, (endpoint) => table[endpoint] ?? null];
  for (const natMap of natMaps) {
    const addresses = nodes.map(({ port }) => ({ host: "localhost", port }));
    const cluster = new Cluster(addresses, { natMap });
    onTestFinished(() => cluster.disconnect());
    const key = `{${uniqueName()}}`;
    const before = await nodeOf(cluster, key);
    // The next refresh mends what a redirection has noted, and the next redirection undoes that.
    cluster.refreshSlotsCache = (done) => done?.();
    await moveSlotOf(nodes, key);
    await cluster.set(key, "found");
    const after = await nodeOf(cluster, key);
    expect(after.options.port).not.toBe(before.options.port);
    expect(await after.get(key)).toBe("found");
  }
});
