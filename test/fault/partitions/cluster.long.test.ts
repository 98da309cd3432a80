import { expect, test } from "vitest";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { masterOf, moveSlotOf, startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { median } from "../../helpers/numbers.ts";
import { replicated } from "../../helpers/replicated.ts";
import { replaced } from "../replaced.ts";
import { ClusterTraffic, PARTITIONS } from "./cluster-traffic.ts";

/* A queue in partitions on a Cluster: a master dies, or a partition moves from one master to another. */

test("a master is killed: the other partitions go on, and all are back soon after the failover", async () => {
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
  const replicatedAt = await replicated(victim, 1, `${name}:replicated`);
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
        // Less than 1.5 s on a quiet machine. A message without a wake-up would wait for a sweep, 24 s away or more.
        expect(traffic.untilDelivered(partition, at)).toBeLessThan(10_000);
        continue;
      }
      const lateness = traffic.lateness(partition, killedAt, at);
      expect(lateness.length).toBeGreaterThan(3);
      // The slots were out of service for about 3 s. If the other partitions had waited for them, half of their
      // messages would be late by half of that time or more.
      expect(median(lateness)).toBeLessThan((at - killedAt) / 4);
    }
    const death = { replicatedAt, diedAt: killedAt };
    expect(traffic.lost(death)).toEqual([]);
    expect(traffic.twice(death)).toEqual([]);
    expect([...traffic.rejected.values()].map(String)).toEqual([]);
    // The new master is known by its address.
    expect((await traffic.line.partitions(traffic.name)).map(({ node }) => node)).not.toContain(
      `127.0.0.1:${victim.port}`,
    );
    await eventually(() => traffic.line.recoveries.length === traffic.line.errors.length);
  }
}, 150_000);

test("a partition's slot moves to another master under load: no message is lost or delivered twice", async () => {
  const cluster = await startCluster();
  const kinds = ["plain", "reliable"] as const;
  const both = kinds.map((kind) => new ClusterTraffic(cluster.cluster, kind, 20_000));
  for (const traffic of both) await traffic.isFlowing();

  const moved = both.map(({ name }) => partitionName(name, 1));
  for (const name of moved) await moveSlotOf(cluster.nodes, name);
  const movedAt = performance.now();
  for (const traffic of both) {
    await eventually(() => traffic.untilDelivered(1, movedAt) < Infinity);
  }
  await Promise.all(both.map((traffic) => traffic.end()));

  for (const traffic of both) {
    expect(traffic.lost()).toEqual([]);
    expect(traffic.twice()).toEqual([]);
    expect(traffic.rejected.size).toBeLessThanOrEqual(traffic.offeredAt.size / 100);
  }
}, 120_000);
