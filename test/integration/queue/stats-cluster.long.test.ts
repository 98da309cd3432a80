import { expect, test } from "vitest";
import { startCluster } from "../../helpers/cluster.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";

const HOUR = 3_600_000;

test("on Cluster, queues of all masters are found, and the number of listeners is unknown", async () => {
  const { cluster } = await startCluster();
  const line = newLine({ redis: cluster });
  const names = Array.from({ length: 6 }, (_, i) => `queue-${i}`);
  for (const name of names) await line.getDelayedQueue(name).offer("x", HOUR);
  const parts = line.getDelayedQueue("parts", { partitions: 3 });
  await parts.offerMany(Array.from({ length: 12 }, () => ({ payload: "x", delay: HOUR })));
  const found = await collect(line.queues());
  expect(found.toSorted()).toEqual([...names, "parts"].toSorted());
  expect(await parts.stats()).toMatchObject({ delayed: 12, listeners: undefined });
});
