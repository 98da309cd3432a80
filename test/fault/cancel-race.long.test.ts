import { expect, it } from "vitest";
import { newLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { uniqueName } from "../helpers/redis.ts";

it("20,000 cancels around the deadline agree with what consumers receive", async () => {
  const COUNT = 20_000;
  const name = uniqueName("race");
  // Two clients move and take, as two processes would. A third cancels.
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
  // Milliseconds before the deadline at which half of the cancels come too late, however fast the machine is.
  let lead = 1;
  const workers = Array.from({ length: 40 }, async (_, worker) => {
    for (let number = worker; number < COUNT; number += 40) {
      const hasKey = number % 2 === 0;
      const delay = Math.max(0, lead) + Math.random() * 6;
      const options = hasKey ? { key: `order:${number}` } : undefined;
      const { id, deadline } = await delayed.offer(number, delay, options);
      // As often before the deadline as after it.
      const wait = deadline - (await line.serverTime()) - lead + (Math.random() - 0.5) * 4;
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      if (await delayed.cancel(hasKey ? `order:${number}` : id)) {
        cancelled.push(number);
        lead -= 0.02;
      } else {
        refused++;
        lead += 0.02;
      }
    }
  });
  await Promise.all(workers);
  await eventually(() => received.length === refused, { within: 60_000 });
  for (const consumer of consumers) await consumer.close();

  // Each number is in exactly one of the two lists.
  const all = [...cancelled, ...received].toSorted((a, b) => a - b);
  expect(all).toEqual(Array.from({ length: COUNT }, (_, i) => i));
  // Otherwise there was no race.
  expect(cancelled.length).toBeGreaterThan(COUNT / 20);
  expect(received.length).toBeGreaterThan(COUNT / 20);
}, 240_000);
