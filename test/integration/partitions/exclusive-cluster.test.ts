import { expect, test } from "vitest";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

test.each(["plain", "reliable"])(
  "on a Cluster two processes share the partitions out, also behind a change (%s)",
  async (kind) => {
    const { cluster } = await startCluster();
    const name = uniqueName("exclusive");
    const handled: { readonly by: number; readonly payload: number }[] = [];
    const options = { partitions: 6, exclusive: true };
    const subscribe = (line: TestLine, by: number) => {
      const note = (payload: number) => void handled.push({ by, payload });
      if (kind === "plain") line.getBlockingQueue<number>(name, options).subscribe(note);
      else line.getReliableQueue<number>(name, options).subscribe(note);
    };
    const [one, two] = [newLine({ redis: cluster }), newLine({ redis: cluster })];
    const queue =
      kind === "plain"
        ? one.getDelayedQueue<number>(name, { partitions: 6 })
        : one.getReliableQueue<number>(name, options);
    subscribe(one, 1);
    subscribe(two, 2);
    for (const first of [0, 100]) {
      const messages = Array.from({ length: 100 }, (_, i) => ({ payload: first + i, delay: 0 }));
      await queue.offerMany(messages);
      await eventually(() => handled.length === first + 100);
      await one.setPartitions(name, 3);
    }
    expect(new Set(handled.map(({ payload }) => payload)).size).toBe(200);
    expect(new Set(handled.map(({ by }) => by)).size).toBe(2);
  },
  20_000,
);
