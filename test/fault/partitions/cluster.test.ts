import { expect, test } from "vitest";
import { masterOf, startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { replaced } from "../replaced.ts";
import { ClusterTraffic, PARTITIONS } from "./cluster-traffic.ts";

/* A master of a Cluster dies that has some of a queue's partitions. */

test("kill -9 of a master: the other partitions go on, and all are back soon after the failover", async () => {
  const cluster = await startCluster({ withReplicas: true, isWhole: false });
  const kinds = ["plain", "reliable"] as const;
  const both = kinds.map((kind) => new ClusterTraffic(cluster.cluster, kind));
  for (const traffic of both) await traffic.isFlowing();
  const [{ name }] = (await both[0]!.line.partitions(both[0]!.name)) as { name: string }[] as [
    { name: string },
  ];
  const victim = await masterOf(cluster, name);
  const gone = await Promise.all(both.map((traffic) => traffic.partitionsOn(victim)));
  // 6 partitions are on 3 masters.
  expect(gone.map(({ length }) => length)).toEqual([2, 2]);

  const replacing = replaced(cluster, victim, name);
  const killedAt = performance.now();
  await victim.kill();
  const at = await replacing;
  for (const [i, traffic] of both.entries()) {
    for (const partition of gone[i]!) {
      await eventually(() => traffic.untilDelivered(partition, at) < Infinity, { within: 20_000 });
    }
  }
  await Promise.all(both.map((traffic) => traffic.end()));

  for (const [i, traffic] of both.entries()) {
    for (let partition = 0; partition < PARTITIONS; partition++) {
      if (gone[i]!.includes(partition)) {
        expect(traffic.untilDelivered(partition, at)).toBeLessThan(1500);
        continue;
      }
      const lateness = traffic.lateness(partition, killedAt, at);
      expect(lateness.length).toBeGreaterThan(10);
      // The slots were out of service for 3 s or so. This much is left to a busy machine.
      expect(Math.max(...lateness)).toBeLessThan(1000);
    }
    expect(traffic.lost(killedAt)).toEqual([]);
    expect(traffic.twice(killedAt)).toEqual([]);
    expect([...traffic.rejected.values()].map(String)).toEqual([]);
    // The new master is known by its address.
    expect((await traffic.line.partitions(traffic.name)).map(({ node }) => node)).not.toContain(
      `127.0.0.1:${victim.port}`,
    );
    console.log(traffic.line.errors.map(String), traffic.line.recoveries);
    await eventually(() => traffic.line.recoveries.length === traffic.line.errors.length);
  }
}, 90_000);
