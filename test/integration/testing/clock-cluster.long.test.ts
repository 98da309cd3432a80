import { Cluster } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

// Nodes pass wake-ups on to each other: a subscriber is on any of them, and a queue's keys are on one.

const EIGHT = "2026-03-28T08:00:00.000Z";

test("a ladder of three days on a Cluster: each attempt at its instant, on whichever nodes it comes to lie", async () => {
  const { cluster } = await startCluster();
  for (let round = 1; round <= 20; round++) {
    const clock = await newClock({ now: EIGHT });
    const line = newLine({ redis: cluster });
    const queue = line.getReliableQueue<string>(uniqueName("ladder"), {
      retry: [2 * MINUTE, HOUR, 3 * DAY],
      maxAttempts: 4,
    });
    const attempts: string[] = [];
    const fail = (_: string, { attempt }: { attempt: number }) => {
      attempts.push(`${attempt} at ${clock.now.toISOString()}`);
      throw new Error("still closed");
    };
    queue.subscribe(fail, { onError: () => {} });
    await queue.offer("notice", 0);
    await clock.advance("4 days");
    expect(attempts, `round ${round}`).toEqual([
      "1 at 2026-03-28T08:00:00.000Z",
      "2 at 2026-03-28T08:02:00.000Z",
      "3 at 2026-03-28T09:02:00.000Z",
      "4 at 2026-03-31T09:02:00.000Z",
    ]);
    await line.close();
    await clock.close();
  }
});

test("two clients of a Cluster: partitions on several nodes, a lease that runs out, and a wait", async () => {
  const { cluster, nodes } = await startCluster();
  const other = new Cluster([nodes[1]?.url ?? ""], { slotsRefreshInterval: 2000 });
  onTestFinished(() => other.disconnect());
  const clock = await newClock({ now: EIGHT });
  const [producer, consumer] = [newLine({ redis: cluster }), newLine({ redis: other })];
  const options = { partitions: 3, leaseTimeout: MINUTE };
  const name = uniqueName("parts");
  const seen: string[] = [];
  const note = (text: string) => seen.push(`${text} at ${clock.now.toISOString()}`);
  consumer.getReliableQueue<string>(name, options).subscribe(note);
  const queue = producer.getReliableQueue<string>(name, options);
  for (const minute of [1, 2, 3, 4, 5, 6, 7, 8]) {
    await queue.offer(`message ${minute}`, minute * MINUTE, { key: `key ${minute}` });
  }
  await clock.advance("10 min");
  expect(seen).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8].map((i) => `message ${i} at 2026-03-28T08:0${i}:00.000Z`),
  );

  const leased = producer.getReliableQueue<string>(uniqueName("lease"), {
    leaseTimeout: MINUTE,
  });
  await leased.offer("report", 10 * SECOND);
  const first = await clock.until(leased.take());
  expect(clock.now.toISOString()).toBe("2026-03-28T08:10:10.000Z");
  const second = await clock.until(leased.take());
  const late = clock.now.getTime() - Date.parse("2026-03-28T08:11:10.000Z");
  expect(late).toBeGreaterThanOrEqual(0);
  expect(late).toBeLessThan(MINUTE);
  expect([second.attempt, await first.ack(), await second.ack()]).toEqual([2, false, true]);

  const ready = consumer.getBlockingQueue<string>(uniqueName("wait"));
  const before = clock.now.getTime();
  expect(await clock.until(ready.poll(MINUTE))).toBeUndefined();
  expect(clock.now.getTime() - before).toBe(MINUTE);
});
