import { expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import { bundle } from "../../helpers/bundle.ts";
import { startChild } from "../../helpers/child.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { upTo } from "../../helpers/numbers.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import type { AttemptNote } from "../workers/attempts-worker.ts";

const MESSAGES = 40;
const died = (attempt: number) => [attempt, `its consumer died in delivery ${attempt}`] as const;

test("the number shrinks after processes have died in their handlers: every attempt counts, none is made twice", async () => {
  const name = uniqueName();
  const program = await bundle(new URL("../workers/attempts-worker.ts", import.meta.url));
  const options = { leaseTimeout: 1000, maxAttempts: 2, partitions: 4 };
  // It only offers, so it does not look for dead consumers.
  const line = newLine({ codec: "string" });
  const queue = line.getReliableQueue<string>(name, options);
  const payloads = upTo(MESSAGES).map((i) => `${i % 2 === 0 ? "deadly" : "once"} ${i}`);
  const deadly = payloads.filter((payload) => payload.startsWith("deadly"));
  // Their keys spread them over the partitions.
  await queue.offerMany(payloads.map((payload) => ({ payload, delay: 0, key: payload })));

  const start = async (): Promise<Child> => {
    const OPTIONS = JSON.stringify(options);
    const env = { REDIS: redisUrl(), QUEUE: name, OPTIONS, CONCURRENCY: String(MESSAGES) };
    const worker = startChild(program, { env });
    await worker.next((word) => word === "loaded");
    await worker.send("go");
    return worker;
  };
  /** The deliveries of all messages to a process, in the order of the payloads. */
  const allTo = async (worker: Child): Promise<AttemptNote[]> => {
    const notes: AttemptNote[] = [];
    while (notes.length < MESSAGES) notes.push((await worker.next()) as AttemptNote);
    return notes.toSorted((a, b) => payloads.indexOf(a.payload) - payloads.indexOf(b.payload));
  };
  const isLeft = async (inFlight: number) => {
    const { ready, ...left } = await queue.stats();
    expect([ready, left.inFlight]).toEqual([0, inFlight]);
  };

  const first = await start();
  const firsts = payloads.map((payload) => ({ payload, attempt: 1, failures: [] }));
  expect(await allTo(first)).toEqual(firsts);
  await first.kill();
  await line.setPartitions(name, 2);
  // The change has given them back; those in the partitions that stay are reclaimed by the next process.
  expect((await queue.stats()).ready).toBeGreaterThan(0);

  const second = await start();
  expect(await allTo(second)).toEqual(
    payloads.map((payload) => ({ payload, attempt: 2, failures: [died(1)] })),
  );
  await eventually(() => isLeft(deadly.length));
  await second.kill();
  await line.setPartitions(name, 1);
  expect(await queue.deadLetters.size()).toBeGreaterThan(0);

  const third = await start();
  await eventually(async () => expect(await queue.deadLetters.size()).toBe(deadly.length));
  await isLeft(0);
  const letters = await collect(queue.deadLetters);
  const found = letters.map(({ payload, attempt, reason, failures }) => {
    const told = failures.map((one) => [one.attempt, one.reason]);
    return { payload: String(payload), attempt, reason, failures: told };
  });
  expect(found.toSorted((a, b) => deadly.indexOf(a.payload) - deadly.indexOf(b.payload))).toEqual(
    deadly.map((payload) => {
      return { payload, attempt: 2, reason: died(2)[1], failures: [died(1), died(2)] };
    }),
  );
  // It was given nothing.
  await third.send("close");
  await expect(third.next()).rejects.toThrow("ended (0) before it sent the message");
});
