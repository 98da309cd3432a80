import { expect, test } from "vitest";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("on a Cluster the key of a guard has to be in the queue's slot, which is said at the offer", async () => {
  const { cluster } = await startCluster();
  const line = newLine({ redis: cluster });
  const name = uniqueName("guards");
  const orders = line.getDelayedQueue<string>(name);
  const far = { key: "status", is: "unpaid" };
  const told = `onlyIf.key must be in the same slot as queue "${name}", so it needs its hash tag {${name}}, got "status"`;
  await expect(orders.offer("a", 0, { onlyIf: far })).rejects.toThrow(new TypeError(told));
  await expect(
    orders.offerMany([
      { payload: "a", delay: 0 },
      { payload: "b", delay: 0, onlyIf: far },
    ]),
  ).rejects.toThrow(new TypeError(told));
  expect(await orders.size()).toBe(0);
  await orders.offer("b", 0, { onlyIf: { key: `{${name}}:status`, exists: true } });
  await orders.offer("c", 0, { onlyIf: { key: `{${name}}:status`, exists: false } });
  expect(await line.getBlockingQueue<string>(name).take()).toBe("c");
  await eventually(() => orders.counters.dropped === 1);

  await line.setPartitions(name, 3);
  // Nobody can know the tag of a partition beforehand, and it changes with the number of partitions.
  const useless = `onlyIf cannot be used in queue "${name}": its partitions are on several nodes`;
  const own = { onlyIf: { key: `{${name}}:status`, is: "unpaid" } };
  await expect(orders.offer("d", 0, own)).rejects.toThrow(useless);
  await expect(orders.offer("d", 0, { ...own, key: "k" })).rejects.toThrow(useless);
  const many = orders.offerMany([{ payload: "d", delay: 0, ...own }]);
  await expect(many).rejects.toThrow(useless);
  expect(await orders.size()).toBe(0);
});
