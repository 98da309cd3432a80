import { expect, test } from "vitest";
import { masterOf, startCluster } from "../helpers/cluster.ts";
import { eventually } from "../helpers/eventually.ts";
import type { OwnServer } from "../helpers/own-server.ts";
import { replaced } from "./replaced.ts";
import { Traffic } from "./traffic.ts";

/* A master of a Cluster is replaced by its replica, because it died or hangs. */

const causes: Record<string, (master: OwnServer) => unknown> = {
  "kill -9": (master) => master.kill(),
  "a master that hangs": (master) => master.pause(),
};

async function failOver([cause, act]: [string, (master: OwnServer) => unknown]): Promise<void> {
  const cluster = await startCluster({ withReplicas: true });
  const traffic = new Traffic(() => ({ redis: cluster.cluster }), 100);
  await traffic.isFlowing();

  const victim = await masterOf(cluster, traffic.name);
  const replacing = replaced(cluster, victim, traffic.name);
  await act(victim);
  const at = await replacing;
  await eventually(() => traffic.untilDelivered(at) < Infinity, { within: 30_000 });
  await traffic.end();

  // Less than 2 s on a quiet machine. A message whose wake-up the new master never got would wait for a sweep, 24 s
  // away or more.
  expect(traffic.untilAcknowledged(at), cause).toBeLessThan(10_000);
  expect(traffic.untilDelivered(at), cause).toBeLessThan(10_000);
  expect(
    [...traffic.rejected.values()].map(({ message }) => message),
    cause,
  ).toEqual([]);
  expect(
    traffic.lostAt.filter((lost) => lost > at),
    cause,
  ).toEqual([]);
}

// Run side by side: the test takes long and mostly waits.
test("a master is killed or hangs: everything is back soon, and no offer is rejected", async () => {
  await Promise.all(Object.entries(causes).map(failOver));
}, 150_000);
