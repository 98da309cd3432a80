import { expect, test } from "vitest";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

test("two processes on a Cluster share the partitions, even after a change", async () => {
  const { cluster } = await startCluster();
  const name = uniqueName("exclusive");
  const handled: { readonly by: number; readonly payload: number }[] = [];
  const options = { partitions: 6, exclusive: true };
  const subscribe = (line: TestLine, by: number) => {
    const note = (payload: number) => void handled.push({ by, payload });
    line.getReliableQueue<number>(name, options).subscribe(note);
  };
  const [one, two] = [newLine({ redis: cluster }), newLine({ redis: cluster })];
  const queue = one.getReliableQueue<number>(name, options);
  subscribe(one, 1);
  subscribe(two, 2);
  let count = 0;
  for (const partitions of [6, 3]) {
    await one.setPartitions(name, partitions);
    const since = handled.length;
    // A late process has to get some, too.
    await eventually(async () => {
      const messages = Array.from({ length: 20 }, () => ({ payload: count++, delay: 0 }));
      await queue.offerMany(messages);
      return new Set(handled.slice(since).map(({ by }) => by)).size === 2;
    });
    await eventually(() => handled.length === count);
  }
  expect(new Set(handled.map(({ payload }) => payload)).size).toBe(count);
}, 20_000);
