import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { masterOf, startCluster, type TestCluster } from "../helpers/cluster.ts";
import { eventually } from "../helpers/eventually.ts";
import type { OwnServer } from "../helpers/own-server.ts";
import { Traffic } from "./traffic.ts";

/* A master of a Cluster is replaced by its replica, since it died or hangs. */

/** Resolves when another node than `victim` serves the queue's slot, and tells since when. */
async function replaced(cluster: TestCluster, victim: OwnServer, key: string): Promise<number> {
  const slot = await cluster.cluster.cluster("KEYSLOT", key);
  const other = cluster.nodes.find((node) => node !== victim);
  const redis = new Redis(other?.port ?? 0, "127.0.0.1");
  onTestFinished(() => redis.disconnect());
  await eventually(
    async () => {
      const ranges = (await redis.cluster("SLOTS")) as unknown as [
        number,
        number,
        [string, number],
      ][];
      return ranges.some(
        ([from, to, [, port]]) => from <= slot && slot <= to && port !== victim.port,
      );
    },
    { within: 30_000, what: "a replica has taken over" },
  );
  return performance.now();
}

for (const [cause, act] of Object.entries({
  "kill -9": (master: OwnServer) => master.kill(),
  "a master that hangs": (master: OwnServer) => master.pause(),
})) {
  test(`${cause}: offers and deliveries are back in 2 s, and no offer is rejected`, async () => {
    const cluster = await startCluster({ withReplicas: true });
    const traffic = new Traffic(() => ({ redis: cluster.cluster }), 100);
    await traffic.isFlowing();

    const victim = await masterOf(cluster, traffic.name);
    const replacing = replaced(cluster, victim, traffic.name);
    await act(victim);
    const at = await replacing;
    await eventually(() => traffic.untilDelivered(at) < Infinity, { within: 30_000 });
    await traffic.end();

    expect(traffic.untilAcknowledged(at)).toBeLessThan(2000);
    expect(traffic.untilDelivered(at)).toBeLessThan(2100);
    expect([...traffic.rejected.values()].map(({ message }) => message)).toEqual([]);
    expect(traffic.lostAt.filter((lost) => lost > at)).toEqual([]);
  }, 90_000);
}
