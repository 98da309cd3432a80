import { expect, test } from "vitest";
import type { WorkerMessage } from "../../helpers/programs/reliable-worker.ts";
import { startChild } from "../../helpers/child.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

// What more than one client, or process, does under one clock.

test("a worker process that knows nothing of the clock is killed: its message comes back as its lease says", async () => {
  const clock = await newClock();
  const line = newLine();
  const name = uniqueName("killed");
  const queue = line.getReliableQueue<string>(name, { codec: "string", leaseTimeout: HOUR });
  await queue.offer("report", 0);
  await clock.settled();
  const worker = startChild<WorkerMessage>(
    new URL("../../helpers/programs/reliable-worker.ts", import.meta.url),
    {
      env: {
        REDIS: redisUrl(),
        QUEUE: name,
        OPTIONS: JSON.stringify({ leaseTimeout: HOUR }),
        MODE: "hold",
      },
    },
  );
  await worker.next(({ kind }) => kind === "start");
  await worker.kill();

  const seen: string[] = [];
  queue.subscribe((text, { attempt }) => void seen.push(`${text}, attempt ${attempt}`));
  await clock.advance("59 min");
  expect(seen).toEqual([]);
  expect((await queue.stats()).inFlight).toBe(1);
  await clock.advance("3 min");
  expect(seen).toEqual(["report, attempt 2"]);
});

test("two clients share the work of one queue, and each message is handled once", async () => {
  const clock = await newClock();
  const [line, other] = [newLine(), newLine()];
  const name = uniqueName("two");
  const seen: number[] = [];
  for (const one of [line, other]) {
    const handle = async (i: number) => {
      await clock.sleep("1 min");
      seen.push(i);
    };
    one.getReliableQueue<number>(name).subscribe(handle);
  }
  const queue = line.getReliableQueue<number>(name);
  for (let i = 0; i < 6; i++) await queue.offer(i, 10 * SECOND);
  await clock.advance("70s");
  expect(seen).toHaveLength(2);
  await clock.advance("2 min");
  expect(seen.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
  expect((await queue.stats()).inFlight).toBe(0);
});

test("a lent client, and two queues that feed each other", async () => {
  const clock = await newClock();
  const line = newLine({ redis: newRedis() });
  const [first, second] = [uniqueName("ping"), uniqueName("pong")];
  const start = clock.now.getTime();
  const seen: string[] = [];
  const bounce = (from: string, to: string) => {
    line.getBlockingQueue<number>(from).subscribe(async (left) => {
      seen.push(`${left} after ${(clock.now.getTime() - start) / HOUR} h`);
      if (left > 0) await line.getDelayedQueue<number>(to).offer(left - 1, HOUR);
    });
  };
  bounce(first, second);
  bounce(second, first);
  await line.getDelayedQueue<number>(first).offer(3, HOUR);
  await clock.advance("1 day");
  expect(seen).toEqual(["3 after 1 h", "2 after 2 h", "1 after 3 h", "0 after 4 h"]);
});

test("partitions: every message at its instant, also while their number changes", async () => {
  const clock = await newClock();
  const line = newLine();
  const name = uniqueName("parts");
  const start = clock.now.getTime();
  const seen = new Map<number, number>();
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  line
    .getBlockingQueue<number>(name, { partitions: 2 })
    .subscribe((i) => void seen.set(i, (clock.now.getTime() - start) / MINUTE));
  for (let i = 1; i <= 10; i++) await queue.offer(i, i * MINUTE, { key: `key ${i}` });
  await clock.advance("5 min");
  expect(seen.size).toBe(5);
  await clock.until(line.setPartitions(name, 4));
  await clock.advance("5 min");
  expect([...seen.keys()].toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  for (const [i, minute] of seen) if (i <= 5) expect(minute).toBe(i);
});

test("an exclusive partition passes to another client when its holder closes", async () => {
  const clock = await newClock();
  const [line, other] = [newLine(), newLine()];
  const name = uniqueName("handed");
  const options = { partitions: 1, exclusive: true } as const;
  const seen: string[] = [];
  line.getReliableQueue<string>(name, options).subscribe((text) => void seen.push(`first ${text}`));
  await clock.advance("10s");
  other
    .getReliableQueue<string>(name, options)
    .subscribe((text) => void seen.push(`second ${text}`));
  await clock.advance("10s");
  await line.close();
  await other.getReliableQueue<string>(name, options).offer("message", SECOND);
  await clock.advance("20s");
  expect(seen).toHaveLength(1);
  expect(seen[0]).toBe("second message");
});

test("a client that was made before the clock lives by it as well", async () => {
  const line = newLine();
  const name = uniqueName("before");
  const ready = line.getBlockingQueue<string>(name);
  await line.getDelayedQueue<string>(name).offer("before", DAY);
  const clock = await newClock();
  await line.getDelayedQueue<string>(name).offer("after", HOUR);
  const taking = ready.take();
  expect(await clock.until(taking)).toBe("after");
  await clock.advance("1 day");
  expect(await ready.poll(0)).toBe("before");
});
test("a client closes at once although time stands still", async () => {
  const clock = await newClock();
  const line = newLine();
  const options = { partitions: 2, exclusive: true } as const;
  line.getReliableQueue<string>(uniqueName("close"), options).subscribe(() => {});
  line.getReliableQueue<string>(uniqueName("close")).subscribe(() => {});
  line.getBlockingQueue<string>(uniqueName("close")).subscribe(() => {});
  await clock.advance("10s");
  await line.close();
  await clock.settled();
  await clock.advance("1 day");
});
