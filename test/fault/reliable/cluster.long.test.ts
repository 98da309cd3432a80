import { expect, test } from "vitest";
import { masterOf, startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { replicated } from "../../helpers/replicated.ts";
import { replaced } from "../replaced.ts";
import { RELIABLE_MESSAGES } from "./crew.ts";
import { GroupTraffic } from "./group-traffic.ts";

/* A master of a Cluster dies while two groups work, and its replica takes over. */

test("a master is killed: two groups go on, nothing gets stuck, and messages acknowledged long before are there", async () => {
  const cluster = await startCluster({ withReplicas: true });
  const traffic = new GroupTraffic(() => ({ redis: cluster.cluster }), 100);
  await traffic.isFlowing();

  const victim = await masterOf(cluster, traffic.name);
  const replacing = replaced(cluster, victim, traffic.name);
  const replicatedAt = await replicated(victim, 1, `{${traffic.name}}:replicated`);
  await victim.kill();
  const at = await replacing;
  await eventually(() => traffic.untilDone(at) < Infinity, { within: 30_000 });
  await traffic.end(cluster.cluster);

  if (RELIABLE_MESSAGES !== undefined) console.log(traffic.countsSince(at));
  const { wanted, found } = await traffic.dead();
  expect(found).toEqual(wanted);
  expect(found.length).toBeGreaterThan(0);
  // Less than 2 s and 3 s on a quiet machine. A message without a wake-up waits for a sweep, 24 s away or more.
  expect(traffic.untilAcknowledged(at)).toBeLessThan(10_000);
  expect(traffic.untilDone(at)).toBeLessThan(15_000);
  expect([...traffic.rejected.values()].map(({ message }) => message)).toEqual([]);
  const { lostAt } = traffic;
  expect(lostAt.filter((lost) => lost < replicatedAt || lost > at)).toEqual([]);
}, 150_000);
