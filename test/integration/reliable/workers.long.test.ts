import { expect, test } from "vitest";
import type { ReliableQueueOptions, SubscribeOptions } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { bundle } from "../../helpers/bundle.ts";
import { collect } from "../../helpers/collect.ts";
import { startChild } from "../../helpers/child.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import type { WorkerMessage } from "../../helpers/programs/reliable-worker.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import type { Child } from "../../../scripts/child/child.ts";
import { upTo } from "../../helpers/numbers.ts";

const source = new URL("../../helpers/programs/reliable-worker.ts", import.meta.url);
/** The id of a message that nobody has offered. */
const address = (i: number) => Buffer.alloc(24, i + 1);

/** With `LADDER=long` a thousand messages climb the ladder in five processes. */
const isLong = process.env["LADDER"] === "long";

interface Worker {
  readonly child: Child<WorkerMessage>;
  /** The lines printed so far. */
  readonly told: WorkerMessage[];
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

async function startWorker(
  name: string,
  mode: string,
  options: ReliableQueueOptions,
  subscribe: SubscribeOptions = {},
  more: NodeJS.ProcessEnv = {},
): Promise<Worker> {
  const child = startChild<WorkerMessage>(await bundle(source), {
    env: {
      REDIS: redisUrl(),
      QUEUE: name,
      MODE: mode,
      OPTIONS: JSON.stringify(options),
      SUBSCRIBE: JSON.stringify(subscribe),
      ...more,
    },
  });
  const told: WorkerMessage[] = [];
  const listen = async () => {
    for await (const message of child.messages()) told.push(message);
  };
  // A killed process does not exit with 0.
  return { child, told, ended: listen().catch(() => {}) };
}

test("a killed process's messages are back after the lease timeout", async () => {
  const name = uniqueName();
  const options = { leaseTimeout: 2000 };
  const line = newLine({ codec: "string" });
  const queue = line.getReliableQueue<string>(name, options);
  const sent = upTo(5).map(String);
  await queue.offerMany(sent.map((payload) => ({ payload, delay: 0 })));
  const worker = await startWorker(name, "hold", options, { concurrency: 5 });
  const isStarted = () => worker.told.filter(({ kind }) => kind === "start").length === 5;
  await eventually(isStarted, { within: 30_000 });
  expect(await queue.poll(2_800)).toBeUndefined();

  const taking = queue.takeMany({ limit: 10 });
  const killedAt = performance.now();
  await worker.child.kill("SIGKILL");
  const deliveries = [...(await taking)];
  const took = performance.now() - killedAt;
  while (deliveries.length < 5) deliveries.push(...(await queue.takeMany({ limit: 10 })));
  console.log(`Back ${Math.round(took)} ms after the kill, with a lease timeout of 2000 ms.`);
  // The last sign of life may have been a third of the timeout before the kill.
  expect(took).toBeGreaterThan(1200);
  // 2.5 s on a quiet machine. Without the group's own look it would take a sweep, 24 s away or more.
  expect(took).toBeLessThan(15_000);
  expect(deliveries.map(({ payload }) => payload).toSorted()).toEqual(sent);
  for (const delivery of deliveries) {
    expect(delivery.attempt).toBe(2);
    expect(await delivery.ack()).toBe(true);
  }
});

test("a message that kills its worker is started maxAttempts times, and takes no other message with it", async () => {
  const name = uniqueName();
  const most = 4;
  const options = { leaseTimeout: 1000, maxAttempts: most };
  const queue = newLine({ codec: "string" }).getReliableQueue<string>(name, options);
  const good = upTo(50).map((i) => `good ${i}`);
  const sent = [...good.slice(0, 10), "poison", ...good.slice(10)];
  const results = await queue.offerMany(sent.map((payload) => ({ payload, delay: 0 })));
  const poisonId = results[10]?.id;

  const workers: Worker[] = [];
  const done = new Set<string>();
  const isOver = async () => {
    for (const { told } of workers)
      for (const one of told) if (one.kind === "done") done.add(one.payload);
    return done.size === good.length && (await queue.deadLetters.size()) === 1;
  };
  while (!(await isOver())) {
    // The next process follows each killed one.
    const worker = await startWorker(name, "poison", options, { concurrency: 20 });
    workers.push(worker);
    let hasEnded = false;
    void worker.ended.then(() => (hasEnded = true));
    await eventually(async () => hasEnded || (await isOver()), { within: 40_000 });
    if (workers.length > most + 1) break;
  }

  const told = workers.flatMap((worker) => worker.told);
  const starts = told.filter((one) => one.kind === "start");
  const poisonStarts = starts.filter(({ payload }) => payload === "poison");
  expect(poisonStarts.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  expect(new Set(poisonStarts.map(({ id }) => id))).toEqual(new Set([poisonId]));
  const [letter, ...others] = await collect(queue.deadLetters);
  expect(others).toEqual([]);
  expect(letter).toMatchObject({ id: poisonId, payload: "poison", attempt: most });
  expect(letter?.reason).toContain("its consumer died in delivery 4");

  const again = starts.filter(({ payload, attempt }) => payload !== "poison" && attempt > 1);
  console.log(`Of 50 good messages ${again.length} deliveries were made again.`);
  // Up to 19 neighbours in each of the first two deliveries.
  expect(again.length).toBeLessThanOrEqual(2 * 19);
  expect(Math.max(...again.map(({ attempt }) => attempt))).toBeLessThanOrEqual(3);
  // From the third delivery on it was alone: its process had finished all others, and started none beside it.
  for (const worker of workers) {
    const at = worker.told.findIndex((one) => one.kind === "start" && one.payload === "poison");
    const poison = worker.told[at];
    if (poison?.kind !== "start" || poison.attempt < 3) continue;
    const before = worker.told.slice(0, at);
    const begun = before.filter(({ kind }) => kind === "start").length;
    expect(before.filter(({ kind }) => kind === "done").length).toBe(begun);
    expect(worker.told.slice(at + 1)).toEqual([]);
  }
  await eventually(async () => (await newRedis().xlen(queueKeys(name).stream)) === 0);
}, 240_000);

test("suspects are delivered one by one, with no other message in flight meanwhile", async () => {
  const name = uniqueName();
  const { stream } = queueKeys(name);
  const redis = newRedis();
  const queue = newLine({ codec: "string" }).getReliableQueue<string>(name);
  expect(await queue.poll()).toBeUndefined();
  for (const i of upTo(6)) {
    await redis.xadd(stream, "*", "a", address(i), "p", `${i}`, "n", "2", "g", "default", "d", "1");
  }
  // A message whose consumer died once is not a suspect.
  await redis.xadd(stream, "*", "a", address(6), "p", "6", "n", "1", "g", "default", "d", "1");
  const seen: [payload: string, inFlight: number][] = [];
  queue.subscribe(
    async (payload) => {
      const [inFlight] = (await redis.xpending(stream, "default")) as [number];
      seen.push([payload, inFlight]);
    },
    { concurrency: 10 },
  );
  await eventually(() => seen.length === 7);
  expect(seen.map(([payload]) => payload).toSorted()).toEqual(upTo(7).map(String));
  const ofSuspects = seen.filter(([payload]) => payload !== "6");
  expect(ofSuspects.map(([, inFlight]) => inFlight)).toEqual(upTo(6).map(() => 1));
});

test("a handler that blocks the event loop for three lease timeouts loses its lease, and its ack returns false", async () => {
  const name = uniqueName();
  const options = { leaseTimeout: 500 };
  const queue = newLine({ codec: "string" }).getReliableQueue<string>(name, options);
  const { id } = await queue.offer("x", 0);
  const worker = await startWorker(name, "block", options, {}, { BLOCK: "1600" });
  const start = () => worker.told.find(({ kind }) => kind === "start");
  await eventually(() => start() !== undefined, { within: 30_000 });
  const delivery = await queue.take();
  expect(delivery).toMatchObject({ id, attempt: 2 });
  expect(await delivery.ack()).toBe(true);
  const acked = () => worker.told.find((one) => one.kind === "acked");
  await eventually(() => acked() !== undefined);
  expect(acked()).toMatchObject({ id, attempt: 1, isAcked: false, isAborted: true });
  expect(await queue.poll(50)).toBeUndefined();
  expect(await newRedis().xlen(queueKeys(name).stream)).toBe(0);
});

test("the ladder: failing messages are tried eight times, on time, by one process each time", async () => {
  const [count, processes] = isLong ? [1000, 5] : [200, 2];
  const name = uniqueName();
  const retry = [0, 50, 200, 100];
  const options = { retry };
  const queue = newLine({ codec: "string" }).getReliableQueue<string>(name, options);
  const sent = upTo(count).map(String);
  const workers = await Promise.all(
    upTo(processes).map(() => startWorker(name, "fail", options, { concurrency: 20 })),
  );
  const areReady = () => workers.every(({ told }) => told.some(({ kind }) => kind === "ready"));
  await eventually(areReady, { within: 40_000 });
  await queue.offerMany(sent.map((payload, i) => ({ payload, delay: 500 + i })));
  await eventually(async () => (await queue.deadLetters.size()) === count, { within: 120_000 });

  // A letter may exist before its last attempt is printed.
  const startsOf = () => workers.flatMap(({ told }) => told).filter((one) => one.kind === "start");
  await eventually(() => startsOf().length >= count * 8);
  const starts = startsOf();
  const byPayload = new Map<string, { attempt: number; at: number }[]>();
  for (const { payload, attempt, at } of starts) {
    byPayload.set(payload, [...(byPayload.get(payload) ?? []), { attempt, at }]);
  }
  const early: number[] = [];
  const lateness: number[] = [];
  for (const payload of sent) {
    const tries = (byPayload.get(payload) ?? []).toSorted((a, b) => a.attempt - b.attempt);
    expect(tries.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    for (const [i, { at }] of tries.slice(1).entries()) {
      const late = at - (tries[i]?.at ?? 0) - (retry[i] ?? 100);
      (late < 0 ? early : lateness).push(late);
    }
  }
  expect(early).toEqual([]);
  const worst = Math.round(Math.max(...lateness));
  console.log(`${count} messages, ${processes} processes: 0 early, ${worst} ms late at most.`);
  // Without its timer a retry would wait for a sweep, 24 s away or more.
  expect(worst).toBeLessThan(20_000);
  // Every process took part.
  for (const { told } of workers) expect(told.length).toBeGreaterThan(count / 10);
  const letters = await collect(queue.deadLetters);
  expect(new Set(letters.map(({ attempt }) => attempt))).toEqual(new Set([8]));
  expect(letters.map(({ payload }) => `${payload}`).toSorted()).toEqual(sent.toSorted());
}, 240_000);
