import { expect, it } from "vitest";
import type { OfferOptions, ReliableQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

type Once = NonNullable<OfferOptions["once"]>;

function newQueue(options: { readonly transfer?: boolean } = {}) {
  const name = uniqueName("once");
  const line = newLine(options);
  return { name, line, keys: queueKeys(name), queue: line.getReliableQueue<string>(name) };
}

const again = (queue: ReliableQueue<string>, once: Once = "handled", delay = 0) =>
  queue.offer("again", delay, { key: "k", once });

const ready = (queue: ReliableQueue<string>, count = 1) =>
  eventually(async () => (await queue.stats()).ready === count);

it("finds a message in every stage, until it was handled", async () => {
  const { queue } = newQueue();
  const { id, deadline, outcome } = await queue.offer("a", 60_000, { key: "k", once: "handled" });
  expect(outcome).toBe("added");
  const existing = { id, deadline, outcome: "existing" };
  expect(await again(queue)).toEqual({ ...existing, stage: "delayed" });

  const due = await queue.promote("k");
  const now = { ...existing, ...due };
  await ready(queue);
  expect(await again(queue)).toEqual({ ...now, stage: "ready" });
  const first = await queue.take();
  expect(await again(queue)).toEqual({ ...now, stage: "running" });
  await first.nack({ delay: 60_000 });
  expect(await again(queue)).toMatchObject({ outcome: "existing", id: due?.id, stage: "retrying" });
  await queue.promote("k");
  const second = await queue.take();
  expect(second).toMatchObject({ id: due?.id, attempt: 2, payload: "a", key: "k" });
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "running" });
  await second.ack();
  expect(await again(queue)).toMatchObject({ outcome: "added" });
  expect(queue.counters).toMatchObject({ offered: 2 });
});

it("keeps the key for its time after the message was handled", async () => {
  const { queue, keys } = newQueue();
  const { id, deadline } = await queue.offer("a", 0, { key: "k", once: { for: 3_600_000 } });
  const before = Date.now() - 1000;
  await (await queue.take()).ack();
  // The `for` of the message that was handled counts.
  const result = await again(queue, "handled");
  expect(result).toEqual({
    id,
    deadline,
    outcome: "existing",
    stage: "handled",
    handledAt: expect.any(Number),
  });
  expect(result.handledAt).toBeGreaterThan(before);
  expect(await queue.stage("k")).toEqual({
    stage: "handled",
    id: undefined,
    places: [],
    hasEnded: true,
    handledAt: new Date(result.handledAt ?? 0),
  });
  expect(await queue.revoke("k")).toMatchObject({ stage: "gone", handledAt: expect.any(Date) });
  expect((await again(queue)).outcome).toBe("existing");

  // An hour later.
  const redis = newRedis();
  const record = await redis.hgetBuffer(keys.once, "k");
  record!.writeBigUInt64LE(BigInt(Date.now() - 3_600_001));
  await redis.hset(keys.once, "k", record!);
  expect(await queue.stage("k")).toMatchObject({ stage: "gone" });
  expect(await queue.stage("k")).not.toHaveProperty("handledAt");
  expect((await again(queue)).outcome).toBe("added");
});

it("says handled while that is remembered, also if the key is free", async () => {
  const { queue } = newQueue();
  await queue.offer("a", 0, { key: "k", once: "handled" });
  await (await queue.take()).ack();
  expect(await queue.stage("k")).toMatchObject({ stage: "handled", handledAt: expect.any(Date) });
  await again(queue, "handled", 60_000);
  const found = await queue.stage("k");
  expect(found.stage).toBe("delayed");
  expect(found).not.toHaveProperty("handledAt");
});

it("does not see what was offered without it, once that is ready; and offers without it see as little", async () => {
  const { queue } = newQueue();
  await queue.offer("plain", 0, { key: "k" });
  await ready(queue);
  expect((await again(queue)).outcome).toBe("added");
  await ready(queue, 2);
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "ready" });
  expect((await queue.offer("plain", 60_000, { key: "k" })).outcome).toBe("added");
  // What waits is found, however it was offered.
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "delayed" });
});

it.each([
  [
    "cancelled while it is delayed",
    async (queue: ReliableQueue<string>) => queue.cancel("k"),
    60_000,
  ],
  ["revoked while it is ready", async (queue: ReliableQueue<string>) => queue.revoke("k"), 0],
  [
    "revoked while it runs",
    async (queue: ReliableQueue<string>) => {
      await queue.take();
      await queue.revoke("k");
    },
    0,
  ],
  ["dead", async (queue: ReliableQueue<string>) => (await queue.take()).reject("no"), 0],
  [
    "cancelled while it retries",
    async (queue: ReliableQueue<string>) => {
      await (await queue.take()).nack({ delay: 60_000 });
      expect((await again(queue)).outcome).toBe("existing");
      await queue.cancel("k");
    },
    0,
  ],
])("frees the key of a message that is %s", async (_, end, delay) => {
  const { queue } = newQueue();
  await queue.offer("a", delay, { key: "k", once: { for: 3_600_000 } });
  if (delay === 0) await ready(queue);
  await end(queue);
  const found = await queue.stage("k");
  expect(found.stage).not.toBe("handled");
  expect(await again(queue)).toMatchObject({ outcome: "added" });
});

it("frees the key of a message that a condition dropped", async () => {
  const { queue } = newQueue();
  const onlyIf = { key: "no such key", is: "there" };
  await queue.offer("a", 0, { key: "k", once: { for: 3_600_000 }, onlyIf });
  await eventually(async () => (await queue.stats()).dropped === 1);
  expect(await again(queue)).toMatchObject({ outcome: "added" });
});

it("is over when every group has settled the message, and one of them by ack", async () => {
  const { name, line, queue } = newQueue();
  const other = line.getReliableQueue<string>(name, { group: "other" });
  for (const one of [queue, other]) await one.poll();
  await queue.offer("a", 0, { key: "k", once: { for: 3_600_000 } });
  await (await queue.take()).ack();
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "ready" });
  const theirs = await other.take();
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "running" });
  await theirs.nack({ delay: 60_000 });
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "retrying" });
  await queue.promote("k");
  await (await other.take()).reject("no");
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "handled" });
  // What is left of it is revoked: the key is free.
  await other.deadLetters.redrive("all");
  await other.take();
  expect(await queue.revoke("k")).toMatchObject({ stage: "running" });
  expect(await again(queue)).toMatchObject({ outcome: "added" });
});

it("is held through a process that dies", async () => {
  const { queue, keys } = newQueue();
  const { id } = await queue.offer("a", 0, { key: "k", once: "handled" });
  const redis = newRedis();
  const consumer = "delayline:100:3:host/1:00000000-0000-0000-0000-000000000000";
  await ready(queue);
  await redis.xreadgroup("GROUP", "default", consumer, "COUNT", 1, "STREAMS", keys.stream, ">");
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "running" });
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ id, attempt: 2 });
  expect(await again(queue)).toMatchObject({ outcome: "existing", id, stage: "running" });
  await delivery.ack();
  expect((await again(queue)).outcome).toBe("added");
});

it("takes the key again when the message is redriven", async () => {
  const { queue } = newQueue();
  const { id } = await queue.offer("a", 0, { key: "k", once: { for: 3_600_000 } });
  await (await queue.take()).reject("no");
  // Another one was handled in the meantime, long ago.
  await queue.offer("b", 0, { key: "k", once: "handled" });
  await (await queue.take()).ack();
  expect(await queue.deadLetters.redrive("all")).toBe(1);
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ id, payload: "a" });
  expect(await again(queue)).toMatchObject({ outcome: "existing", id, stage: "running" });
  await delivery.ack();
  expect(await again(queue)).toMatchObject({ outcome: "existing", id, stage: "handled" });
});

it("leaves a message dead while another one has its key, or is remembered", async () => {
  const { queue } = newQueue();
  const { id } = await queue.offer("a", 0, { key: "k", once: { for: 3_600_000 } });
  await (await queue.take()).reject("no");
  await queue.offer("b", 60_000, { key: "k", once: { for: 3_600_000 } });
  const { deadLetters } = queue;
  expect(await deadLetters.redrive("all")).toBe(0);
  await queue.promote("k");
  const delivery = await queue.take();
  expect(await deadLetters.redrive(id)).toBe(0);
  await delivery.ack();
  expect(await deadLetters.redrive("all")).toBe(0);
  expect(await queue.stats()).toMatchObject({ dead: 1, retries: 0 });
  expect(await queue.stage(id)).toMatchObject({ stage: "dead" });
});

it("redrives one of two messages that died under one key", async () => {
  const { queue } = newQueue();
  for (const payload of ["a", "b"]) {
    await queue.offer(payload, 0, { key: "k", once: "handled" });
    await (await queue.take()).reject("no");
  }
  expect(await queue.deadLetters.redrive("all")).toBe(1);
  expect(await queue.take()).toMatchObject({ payload: "a" });
  expect(await queue.stats()).toMatchObject({ dead: 1 });
});

it("offers of one turn with one key: one is added", async () => {
  const { queue } = newQueue();
  const offers = Array.from({ length: 8 }, () => again(queue, { for: 1000 }));
  const outcomes = (await Promise.all(offers)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["added", ...Array.from({ length: 7 }, () => "existing")]);
  const results = await queue.offerMany(
    [1, 2].map(() => ({ payload: "x", delay: 0, key: "other", once: "handled" as const })),
  );
  expect(results.map(({ outcome }) => outcome)).toEqual(["added", "existing"]);
  expect(results[1]).toMatchObject({ stage: "delayed" });
});

it("finds a message that waits for its turn, and keeps its lane", async () => {
  const { queue } = newQueue();
  await queue.flow.set({ lane: { concurrency: 1 } });
  const inLane = { lane: "a", once: "handled" } as const;
  await queue.offer("first", 0, { ...inLane, key: "first" });
  await queue.offer("second", 0, { ...inLane, key: "second" });
  await eventually(async () => (await queue.stage("second")).stage === "waiting");
  expect(await queue.offer("x", 0, { ...inLane, key: "second" })).toMatchObject({
    outcome: "existing",
    stage: "waiting",
  });
  await (await queue.take()).ack();
  const second = await queue.take();
  expect(second.payload).toBe("second");
  expect(await queue.offer("x", 0, { ...inLane, key: "second" })).toMatchObject({
    stage: "running",
  });
  expect(await queue.get("third")).toBeUndefined();
});

it("remembers with keepHandled as well", async () => {
  const name = uniqueName("once");
  const queue = newLine().getReliableQueue<string>(name, { keepHandled: 60_000 });
  const { id } = await queue.offer("a", 0, { key: "k", once: { for: 60_000 } });
  await queue.offer("b", 0);
  await ready(queue, 2);
  const both = await queue.takeMany({ limit: 2 });
  await Promise.all(both.map((one) => one.ack()));
  expect(await again(queue)).toMatchObject({ outcome: "existing", stage: "handled", id });
  expect(await queue.handled(id)).toHaveLength(1);
  expect(await queue.stats()).toMatchObject({ inFlight: 0 });
});

it("never believes what it has written down", async () => {
  const { queue, keys } = newQueue();
  const redis = newRedis();
  // The stream is deleted under a message: nothing has it any more.
  await queue.offer("a", 0, { key: "k", once: { for: 3_600_000 } });
  await ready(queue);
  await redis.xtrim(keys.stream, "MAXLEN", 0);
  expect((await again(queue, "handled", 60_000)).outcome).toBe("added");
  await queue.cancel("k");
  for (const bytes of ["", "x", "y".repeat(40), `${"\0".repeat(40)}\xC1`, "\xFF".repeat(90)]) {
    await redis.hset(keys.once, "k", Buffer.from(bytes, "latin1"));
    expect((await again(queue, "handled", 60_000)).outcome, bytes).toBe("added");
    await queue.cancel("k");
  }
});

it("says why it refuses", async () => {
  const { queue, line } = newQueue({ transfer: false });
  const plain = line.getDelayedQueue<string>(uniqueName("plain"));
  const once = "handled";
  await expect(plain.offer("a", 0, { key: "k", once })).rejects.toThrow(
    "once is an option of reliable queues",
  );
  const bad: [object, typeof TypeError | typeof RangeError, string][] = [
    [{ once }, TypeError, "once needs a key"],
    [{ key: "k", once, onDuplicate: "replace" }, TypeError, 'once goes with onDuplicate "ignore"'],
    [{ key: "k", once, onDuplicate: "update" }, TypeError, "would be lost"],
    [{ key: "k", once: true }, TypeError, 'once must be "handled" or { for: ms }, got true'],
    [{ key: "k", once: null }, TypeError, "got null"],
    [{ key: "k", once: "always" }, TypeError, "always"],
    [{ key: "k", once: {} }, TypeError, "once.for must be a whole number"],
    [{ key: "k", once: { for: -1 } }, RangeError, "once.for"],
    [{ key: "k", once: { for: 1.5 } }, RangeError, "once.for"],
    [{ key: "k", once: { for: 1, until: 2 } }, TypeError, "until"],
  ];
  for (const [options, type, text] of bad) {
    const offering = queue.offer("a", 0, options);
    await expect(offering, text).rejects.toThrow(type);
    await expect(queue.offer("a", 0, options as OfferOptions)).rejects.toThrow(text);
  }
  expect((await queue.offer("a", 0, { key: "k", once, onDuplicate: "ignore" })).outcome).toBe(
    "added",
  );
});

it("a sweep forgets what has nothing to say any more", async () => {
  const { queue, keys, line, name } = newQueue();
  const redis = newRedis();
  await queue.offer("a", 0, { key: "k", once: "handled" });
  await (await queue.take()).ack();
  await queue.offer("b", 60_000, { key: "later", once: "handled" });
  expect(await redis.zrange(keys.onceEnds, "0", "-1")).toEqual(["k"]);
  const record = await redis.hgetBuffer(keys.once, "k");
  record!.writeBigUInt64LE(BigInt(Date.now() - 60_001));
  await redis.hset(keys.once, "k", record!);
  await redis.zadd(keys.onceEnds, Date.now() - 1, "k");
  // A pause makes every task sweep, when it ends.
  await queue.pause();
  await line.getReliableQueue<string>(name).resume();
  await eventually(async () => (await redis.exists(keys.once, keys.onceEnds)) === 0);
});
