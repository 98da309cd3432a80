import { expect, test } from "vitest";
import { HandlerError, type RetryOptions } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

const LATER = 60_000;

test("a throw is retried after the pauses of the array, the last of which repeats, and then makes a dead letter", async () => {
  const line = newLine();
  const options = { retry: [40, 90], maxAttempts: 4 };
  const queue = line.getReliableQueue<number>(uniqueName(), options);
  await line.serverTime();
  const seen: { attempt: number; at: number }[] = [];
  const told: unknown[] = [];
  queue.subscribe(
    async (n, { attempt }) => {
      seen.push({ attempt, at: await line.serverTime() });
      throw new Error(`no ${n}`);
    },
    { onError: (error, payload) => told.push([String(error), payload]) },
  );
  const { id } = await queue.offer(7, 0);
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  const pauses = seen.slice(1).map(({ at }, i) => at - (seen[i]?.at ?? 0));
  for (const [i, least] of [40, 90, 90].entries()) {
    // The estimate of the server's clock may be wrong by a round trip.
    expect(pauses[i]).toBeGreaterThan(least - 5);
    // Without its timer a retry would wait for a sweep, 24 s away or more.
    expect(pauses[i]).toBeLessThan(least + 15_000);
  }
  const [letter] = await collect(queue.deadLetters);
  expect(letter).toMatchObject({ id, payload: 7, attempt: 4, reason: "no 7", group: "default" });
  await eventually(() => told.length === 4);
  expect(told[0]).toEqual(["Error: no 7", 7]);
});

test("a throw or a nack in the last delivery makes a dead letter at once", async () => {
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(uniqueName(), { retry: [LATER], maxAttempts: 1 });
  queue.subscribe(async (payload, delivery) => {
    if (payload === "throw") throw new Error("thrown");
    // A delay makes no difference.
    expect(await delivery.nack({ delay: 5, reason: "nacked" })).toBe(true);
  });
  await queue.offer("throw", 0);
  await queue.offer("nack", 0);
  await eventually(async () => (await queue.deadLetters.size()) === 2);
  const letters = await collect(queue.deadLetters);
  expect(letters.map(({ attempt, reason }) => [attempt, reason])).toEqual([
    [1, "thrown"],
    [1, "nacked"],
  ]);
  expect(await queue.size()).toBe(0);
});

test("the reason of a dead letter comes from what was thrown", async () => {
  const thrown: unknown[] = [new TypeError(""), "a text", null, { some: "thing" }];
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<number>(uniqueName(), { maxAttempts: 1 });
  queue.subscribe((n) => {
    throw thrown[n];
  });
  await queue.offerMany(thrown.map((_, payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.deadLetters.size()) === thrown.length);
  const letters = await collect(queue.deadLetters);
  expect(letters.map(({ reason }) => reason)).toEqual([
    "TypeError",
    "a text",
    "the handler threw null",
    "the handler threw object",
  ]);
});

test("a retry function gets the failed attempt and the error; undefined makes a dead letter", async () => {
  const calls: unknown[] = [];
  const line = newLineThatMayFail();
  const queue = line.getReliableQueue<string>(uniqueName(), {
    retry: (attempt, error) => {
      calls.push([attempt, (error as Error).message]);
      return attempt < 3 ? 0 : undefined;
    },
  });
  const first = queue.subscribe((_, { attempt }) => {
    throw new Error(`no ${attempt}`);
  });
  await queue.offer("x", 0);
  await eventually(async () => (await queue.deadLetters.size()) === 1);
  expect(calls).toEqual([
    [1, "no 1"],
    [2, "no 2"],
    [3, "no 3"],
  ]);
  const [letter] = await collect(queue.deadLetters);
  expect(letter).toMatchObject({ attempt: 3, reason: "no 3" });
  await first.close();

  // It is called for a nack without a delay, and not for one with a delay.
  calls.length = 0;
  await queue.offer("y", 0);
  await (await queue.take()).nack({ reason: "why" });
  await (await queue.take()).nack({ delay: 0 });
  expect(await (await queue.take()).ack()).toBe(true);
  expect(calls).toEqual([[1, "why"]]);
});

const mistakes: [what: string, retry: RetryOptions][] = [
  [
    "throws",
    () => {
      throw new Error("mistaken");
    },
  ],
  ["returns a string", () => "soon" as never],
  ["returns a negative number", () => -1],
];
test.each(mistakes)(
  "if the retry function %s, the default ladder decides, and the error is reported",
  async (_, retry) => {
    const line = newLineThatMayFail();
    const queue = line.getReliableQueue<string>(uniqueName(), { retry });
    queue.subscribe(
      () => {
        throw new Error("no");
      },
      { onError: () => {} },
    );
    const before = await line.serverTime();
    await queue.offer("x", 0);
    await eventually(() => line.errors.length === 1);
    await eventually(async () => (await queue.size()) === 1);
    const deadline = Number(await queue.nextDeadline());
    expect(deadline - before).toBeGreaterThan(700);
    expect(deadline - (await line.serverTime())).toBeLessThanOrEqual(1010);
    expect(line.errors).toEqual([expect.any(HandlerError)]);
    expect(line.errors[0]?.message).toContain("the retry of queue");
  },
);

test("a retrying message is found, rescheduled and cancelled by its id", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name);
  const headers = { a: "b" };
  const { id } = await queue.offer("x", 0, { key: "k", headers });
  const ready = await queue.take();
  // A message in flight is neither delayed nor retrying.
  expect([await queue.size(), await queue.has(id), await queue.isEmpty()]).toEqual([
    0,
    false,
    true,
  ]);
  expect(await queue.cancel(id)).toBe(false);
  // Its key is free, and another message takes it.
  const sameKey = await queue.offer("y", 2 * LATER, { key: "k" });
  expect(sameKey.outcome).toBe("added");
  await ready.nack({ delay: LATER });

  expect([await queue.size(), await queue.has(id), await queue.isEmpty()]).toEqual([
    2,
    true,
    false,
  ]);
  const found = await queue.get(id);
  expect(found).toMatchObject({ id, payload: "x", key: "k" });
  expect(await queue.nextDeadline()).toBe(found?.deadline);
  expect(await queue.get("k")).toMatchObject({ id: sameKey.id });

  const before = await line.serverTime();
  const later = await queue.reschedule(id, 3 * LATER);
  expect(Number(later?.deadline) - before).toBeGreaterThan(3 * LATER - 100);
  expect(await queue.nextDeadline()).toBe(sameKey.deadline);
  const at = new Date(Math.ceil(before) + LATER);
  expect(await queue.rescheduleAt(id, at)).toEqual({ id, deadline: at.getTime() });
  expect(await queue.nextDeadline()).toBe(at.getTime());
  expect((await queue.promote(id))?.id).toBe(id);
  const again = await queue.take();
  expect(again).toMatchObject({ id, attempt: 2, key: "k", headers });
  expect(await queue.reschedule(id, 5)).toBeUndefined();

  await again.nack({ delay: LATER });
  expect(await queue.cancelMany([id, "k", id])).toEqual([true, true, false]);
  expect(await queue.isEmpty()).toBe(true);
  expect(await queue.nextDeadline()).toBeUndefined();
  const { retries, retrying, stream } = queueKeys(name);
  expect(await newRedis().exists(retries, retrying)).toBe(0);
  expect(await newRedis().xlen(stream)).toBe(0);
});

test("a promoted retry comes at once, even if its process waits for another deadline", async () => {
  const queue = newLine().getReliableQueue<string>(uniqueName());
  const { id } = await queue.offer("x", 0);
  await (await queue.take()).nack({ delay: LATER });
  const taking = queue.take();
  await queue.reschedule(id, 10);
  expect(await taking).toMatchObject({ id, attempt: 2 });
  await (await taking).ack();
});

test("a message that two groups failed to handle is one message, and is cancelled for both", async () => {
  const name = uniqueName();
  const line = newLine();
  const a = line.getReliableQueue<string>(name, { group: "a" });
  const b = line.getReliableQueue<string>(name, { group: "b" });
  // Both groups exist before the message does.
  expect([await a.poll(), await b.poll()]).toEqual([undefined, undefined]);
  const { id } = await a.offer("x", 0);
  await (await a.take()).nack({ delay: LATER });
  await (await b.take()).nack({ delay: LATER / 2 });
  // It counts once for each group; its deadline is the earlier one.
  expect(await a.size()).toBe(2);
  const { deadline } = (await b.get(id)) ?? {};
  expect(Number(deadline) - (await line.serverTime())).toBeLessThan(LATER * 0.6);
  expect(await a.cancel(id)).toBe(true);
  expect(await b.cancel(id)).toBe(false);
  expect(await a.size()).toBe(0);

  const { id: second } = await a.offer("y", 0);
  await (await a.take()).nack({ delay: LATER });
  await (await b.take()).nack({ delay: LATER });
  await a.promote(second);
  const again = [await a.take(), await b.take()];
  expect(again.map(({ id: given, attempt }) => [given, attempt])).toEqual([
    [second, 2],
    [second, 2],
  ]);
  await Promise.all(again.map((delivery) => delivery.ack()));
});

test("clear removes delayed and retrying messages, and nothing else", async () => {
  const name = uniqueName();
  const line = newLine();
  const queue = line.getReliableQueue<string>(name);
  await queue.offer("failed", 0);
  await (await queue.take()).nack({ delay: LATER });
  await queue.offer("in hand", 0);
  const held = await queue.take();
  await queue.offer("delayed", LATER, { key: "k" });
  await queue.offer("ready", 0);
  await eventually(async () => (await newRedis().xlen(queueKeys(name).stream)) === 2);
  // A delayed queue shows delayed messages only.
  expect(await line.getDelayedQueue(name).insertionOrder.readAll()).toEqual(["delayed"]);
  expect(await queue.clear()).toBe(2);
  expect(await queue.isEmpty()).toBe(true);
  expect(await held.ack()).toBe(true);
  const ready = await queue.take();
  expect(ready.payload).toBe("ready");
  await ready.ack();
});
