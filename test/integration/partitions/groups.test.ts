import { expect, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";

const P = 16;

test("each group reads all partitions, however many processes another group has", async () => {
  const name = uniqueName("partitions");
  const taken: Record<string, number[]> = { many: [], one: [] };
  const subscribe = (group: string) =>
    newLine()
      .getReliableQueue<number>(name, { partitions: P, group, leaseTimeout: 30_000 })
      .subscribe((payload) => void taken[group]?.push(payload));
  for (let i = 0; i < 6; i++) subscribe("many");
  subscribe("one");
  const line = newLine();
  await eventually(async () => (await line.partitions(name)).length === P);
  const queue = line.getReliableQueue<number>(name, { partitions: P, group: "one" });
  // Every partition has some of these.
  const all = Array.from({ length: 20 * P }, (_, i) => i);
  await queue.offerMany(
    all.map((payload) => ({ payload, delay: 0, partitionKey: `customer:${payload}` })),
  );
  const sorted = (group: string) => taken[group]?.toSorted((a, b) => a - b);
  await eventually(() => taken["one"]?.length === all.length);
  expect(sorted("one")).toEqual(all);
  await eventually(() => taken["many"]?.length === all.length);
  expect(sorted("many")).toEqual(all);
});

test("a paused queue stays paused everywhere when the ordinary one joins it", async () => {
  const name = uniqueName("partitions");
  const line = newLine();
  const queue = line.getDelayedQueue<string>(name, { partitions: 4 });
  await queue.pause();
  // A process that cannot follow has left a message. The change that takes it in is given up halfway.
  const unaware = newLineThatMayFail({ transfer: false });
  const ordinary = unaware.getDelayedQueue<string>(name, { interop: "redisson" });
  await ordinary.offer("late", 3_600_000);
  const changing = new AbortController();
  const options = { signal: changing.signal, onProgress: () => changing.abort() };
  await expect(line.setPartitions(name, 4, options)).rejects.toThrow("abort");
  await queue.offer("a", 0);
  expect(await ordinary.isPaused()).toBe(true);
  const ready = line.getBlockingQueue<string>(name);
  expect(await ready.poll(100)).toBeUndefined();
  await queue.resume();
  expect(await ready.poll(5_000)).toBe("a");
  expect(await ordinary.isPaused()).toBe(false);
});
