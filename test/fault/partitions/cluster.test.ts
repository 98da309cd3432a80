import { expect, test } from "vitest";
import { bucketOfKey } from "../../../src/queue/bucket.ts";
import { tableOf } from "../../../src/partitions/ring.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { masterOf, startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { replaced } from "../replaced.ts";
import { ClusterTraffic } from "./cluster-traffic.ts";

/* A master of a Cluster dies that has some of a queue's partitions. */

test("kill -9 of a master: the other partitions go on, and all are back soon after the failover", async () => {
  const cluster = await startCluster({ withReplicas: true });
  const { cluster: redis } = cluster;
  const all = [new ClusterTraffic(redis, "plain"), new ClusterTraffic(redis, "reliable")];
  await Promise.all(all.map((traffic) => traffic.isFlowing()));
  console.log("flowing");
  const [first] = all;
  const [{ name }] = (await first!.line.partitions(first!.name)) as [{ name: string }];
  const victim = await masterOf(cluster, name);
  const lost = (await Promise.all(all.map((traffic) => traffic.partitionsOn(victim)))) as number[][];
  console.log(lost);
  const replacing = replaced(cluster, victim, name);
  const killedAt = performance.now();
  await victim.kill();
  const at = await replacing;
  console.log("failover", at - killedAt);
  for (const [i, traffic] of all.entries()) {
    await eventually(() => lost[i]!.every((p) => traffic.untilDelivered(p, at) < Infinity), { within: 30_000 });
  }
  for (const traffic of all) await traffic.end();
  for (const [i, traffic] of all.entries()) {
    console.log(traffic.kind, "back", lost[i]!.map((p) => Math.round(traffic.untilDelivered(p, at))));
    console.log("living", [0, 1, 2, 3, 4, 5].filter((p) => !lost[i]!.includes(p)).map((p) => traffic.lateness(p, killedAt, at).map(Math.round).slice(-5).join(",")));
    console.log("lost", traffic.lost(killedAt), "twice", traffic.twice(killedAt), "rejected", [...traffic.rejected.values()].map(String).slice(0, 5), traffic.rejected.size, traffic.offeredAt.size);
    console.log(traffic.line.errors.map(String), traffic.line.recoveries.map((r) => r.error.message));
  }
}, 90_000);
