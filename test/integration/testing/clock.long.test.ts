import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { MINUTE, newClock } from "../../helpers/test-clock.ts";

// Hours in which processes give signs of life.

test("an exclusive consumer keeps its partitions for an hour, and its messages their order", async () => {
  const clock = await newClock();
  const line = newLine();
  const options = { partitions: 2, exclusive: true } as const;
  const queue = line.getReliableQueue<string>(uniqueName("exclusive"), options);
  const seen: string[] = [];
  const tenures = new Set<string>();
  queue.subscribe((text, { fence }) => {
    seen.push(text);
    tenures.add(`${text.charAt(0)}: fence ${fence}`);
  });
  await clock.advance("10s");
  for (const minute of [1, 20, 59]) {
    for (const key of ["a", "b"]) {
      await queue.offer(`${key} at ${minute}`, minute * MINUTE, { partitionKey: key });
    }
  }
  await clock.advance("1 hour");
  for (const key of ["a", "b"]) {
    expect(seen.filter((text) => text.startsWith(key))).toEqual(
      [1, 20, 59].map((minute) => `${key} at ${minute}`),
    );
  }
  // Nobody took the partitions meanwhile.
  expect(tenures.size).toBe(2);
});

test("a handler that sleeps five hours keeps its lease of a minute", async () => {
  const clock = await newClock();
  const [line, other] = [newLine(), newLine()];
  const name = uniqueName("long");
  const seen: string[] = [];
  for (const one of [line, other]) {
    const queue = one.getReliableQueue<string>(name, { leaseTimeout: MINUTE });
    queue.subscribe(async (text, { attempt, signal }) => {
      seen.push(`${text} ${attempt}`);
      await clock.sleep("5 hours");
      seen.push(signal.aborted ? "lost" : "done");
    });
  }
  await line.getReliableQueue<string>(name).offer("render", 0);
  await clock.advance("4h 59m");
  expect(seen).toEqual(["render 1"]);
  await clock.advance("2 min");
  expect(seen).toEqual(["render 1", "done"]);
});
