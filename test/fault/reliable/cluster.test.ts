import { expect, test } from "vitest";
import { masterOf, startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { replaced } from "../replaced.ts";
import { RELIABLE_MESSAGES } from "./crew.ts";
import { GroupTraffic } from "./group-traffic.ts";

/* A master of a Cluster dies while two groups work, and its replica takes over. */

test("kill -9: two groups go on, nothing gets stuck, and what was acknowledged long before is there", async () => {
  const cluster = await startCluster({ withReplicas: true });
  const traffic = new GroupTraffic(() => ({ redis: cluster.cluster }), 100);
  await traffic.isFlowing();

  const victim = await masterOf(cluster, traffic.name);
  const replacing = replaced(cluster, victim, traffic.name);
  const actedAt = performance.now();
  await victim.kill();
  const at = await replacing;
  await eventually(() => traffic.untilDone(at) < Infinity, { within: 30_000 });
  await traffic.end(cluster.cluster);

  if (RELIABLE_MESSAGES !== undefined) console.log(traffic.countsSince(at));
  const { wanted, found } = await traffic.dead();
  expect(found).toEqual(wanted);
  expect(found.length).toBeGreaterThan(0);
  expect(traffic.untilAcknowledged(at)).toBeLessThan(2000);
  expect(traffic.untilDone(at)).toBeLessThan(3000);
  expect([...traffic.rejected.values()].map(({ message }) => message)).toEqual([]);
  const { lostAt } = traffic;
  expect(lostAt.filter((lost) => lost < actedAt - 500 || lost > at)).toEqual([]);
}, 90_000);
