import { expect, it } from "vitest";
import { newLine } from "../helpers/delayline.ts";
import { uniqueName } from "../helpers/redis.ts";

it("answers 20,000 cancels around the deadline in agreement with what consumers receive", async () => {
  const COUNT = 20_000;
  const name = uniqueName("race");
  // Two processes' worth of clients move and take; a third cancels.
  const received: number[] = [];
  const consumers = [newLine(), newLine()].map((line) =>
    line
      .getBlockingQueue<number>(name)
      .subscribe((payload) => received.push(payload), { concurrency: 20 }),
  );
  const line = newLine();
  const delayed = line.getDelayedQueue<number>(name);

  const cancelled: number[] = [];
  let refused = 0;
  const workers = Array.from({ length: 40 }, async (_, worker) => {
    for (let number = worker; number < COUNT; number += 40) {
      const hasKey = number % 2 === 0;
      const delay = Math.random() * 6;
      const options = hasKey ? { key: `order:${number}` } : undefined;
      const { id, deadline } = await delayed.offer(number, delay, options);
      // Around the deadline: as often before as after.
      const wait = deadline - (await line.serverTime()) + (Math.random() - 0.6) * 4;
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      if (await delayed.cancel(hasKey ? `order:${number}` : id)) cancelled.push(number);
      else refused++;
    }
  });
  await Promise.all(workers);
  await expect.poll(() => received.length, { timeout: 20_000 }).toBe(refused);
  for (const consumer of consumers) await consumer.close();

  // Each number is in exactly one of the two lists.
  const all = [...cancelled, ...received].toSorted((a, b) => a - b);
  expect(all).toEqual(Array.from({ length: COUNT }, (_, i) => i));
  // Otherwise it was no race.
  expect(cancelled.length).toBeGreaterThan(COUNT / 20);
  expect(received.length).toBeGreaterThan(COUNT / 20);
}, 120_000);
