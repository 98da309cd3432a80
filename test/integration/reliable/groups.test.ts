import { expect, test } from "vitest";
import type { ReliableQueue } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { bundle } from "../../helpers/bundle.ts";
import { startChild } from "../../helpers/child.ts";
import { collect } from "../../helpers/collect.ts";
import { eventually } from "../../helpers/eventually.ts";
import type { WorkerMessage } from "../../helpers/programs/reliable-worker.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { upTo } from "../../helpers/numbers.ts";
import { serverTime } from "../../helpers/server-time.ts";

const worker = new URL("../../helpers/programs/reliable-worker.ts", import.meta.url);
/** Takes all messages that a group can get now, in order. */
async function drain(queue: ReliableQueue<string>): Promise<string[]> {
  const payloads: string[] = [];
  for (;;) {
    const deliveries = await queue.takeMany({ limit: 100, timeout: 0 });
    if (deliveries.length === 0) return payloads;
    for (const delivery of deliveries) {
      payloads.push(delivery.payload);
      expect(await delivery.ack()).toBe(true);
    }
  }
}

async function readyCount(name: string, count: number): Promise<void> {
  const redis = newRedis();
  await eventually(async () => (await redis.xlen(queueKeys(name).stream)) === count);
}

test("each group gets every message, and one consumer in each; the last group that acknowledges deletes", async () => {
  const name = uniqueName();
  const lines = [newLine(), newLine()];
  const seen = new Map<string, string[]>([
    ["a", []],
    ["b", []],
  ]);
  const queues = ["a", "b"].flatMap((group) =>
    lines.map((line) => line.getReliableQueue<string>(name, { group })),
  );
  for (const queue of queues) expect(await queue.poll()).toBeUndefined();
  const begin = (group: string) => {
    for (const queue of queues.filter((one) => one.group === group))
      queue.subscribe((payload) => seen.get(group)?.push(payload), { concurrency: 3 });
  };
  begin("a");
  const sent = upTo(100).map(String);
  await queues[0]?.offerMany(sent.map((payload) => ({ payload, delay: 5 })));
  // The second group begins when the first has handled everything.
  for (const group of ["a", "b"]) {
    if (group === "b") begin("b");
    await eventually(() => seen.get(group)?.length === 100);
    expect(seen.get(group)?.toSorted()).toEqual(sent.toSorted());
  }
  await readyCount(name, 0);
});

test("a retry, a give-back and an expired lease concern only their own group", async () => {
  const name = uniqueName();
  const line = newLine();
  const a = line.getReliableQueue<string>(name, { group: "a", leaseTimeout: 600 });
  const b = line.getReliableQueue<string>(name, { group: "b" });
  expect([await a.poll(), await b.poll()]).toEqual([undefined, undefined]);
  const { id } = await a.offer("x", 0);
  expect(await a.take()).toMatchObject({ id, attempt: 1 });
  // Its lease ends.
  const second = await a.take();
  expect(second).toMatchObject({ id, attempt: 2 });
  await second.nack({ delay: 0 });
  const third = await a.take();
  expect(third).toMatchObject({ id, attempt: 3 });
  expect(await third.ack()).toBe(true);

  const own = await b.take();
  expect(own).toMatchObject({ id, attempt: 1 });
  await own.ack();
  expect(await b.poll(50)).toBeUndefined();
  expect(await a.poll(50)).toBeUndefined();
  await readyCount(name, 0);
});

test("a late group begins with all messages, with new ones, or at an instant", async () => {
  const name = uniqueName();
  const line = newLine();
  const open = (group: string, start?: "0" | "new" | Date) =>
    line.getReliableQueue<string>(name, { group, ...(start !== undefined && { start }) });
  const first = open("first");
  await first.offer("before", 0);
  await readyCount(name, 1);
  const redis = newRedis();
  // Two messages of one millisecond would be on the same side.
  const [entry] = await redis.xrange(queueKeys(name).stream, "-", "+");
  const since = new Date(Number(entry?.[0].split("-")[0]) + 1);
  await eventually(async () => (await serverTime(redis)) > since.getTime());
  await first.offer("between", 0);
  await readyCount(name, 2);
  const groups = [open("from 0", "0"), open("default"), open("new", "new"), open("since", since)];
  for (const queue of groups) expect(await queue.size()).toBe(0);
  // A group is created on first use.
  const polled = await Promise.all(groups.map((queue) => drain(queue)));
  expect(polled).toEqual([["before", "between"], ["before", "between"], [], ["between"]]);
  await first.offer("after", 0);
  await readyCount(name, 3);
  const later = await Promise.all(groups.map((queue) => drain(queue)));
  expect(later).toEqual([["after"], ["after"], ["after"], ["after"]]);
  expect(await drain(first)).toEqual(["before", "between", "after"]);
  await readyCount(name, 0);
});

test("an existing group continues at its position, whatever start says", async () => {
  const name = uniqueName();
  const first = newLine().getReliableQueue<string>(name);
  await first.offer("x", 0);
  await readyCount(name, 1);
  const second = newLine().getReliableQueue<string>(name, { start: "new" });
  expect(await drain(second)).toEqual(["x"]);
});

test("offers made before the group is there keep their order, with and without a signal", async () => {
  const queue = newLine({ transfer: false }).getReliableQueue<string>(uniqueName());
  const { signal } = new AbortController();
  const at = Date.now() + 60_000;
  const sent = upTo(20).map(String);
  await Promise.all(sent.map((n, i) => queue.offerAt(n, at, i % 2 === 0 ? { signal } : {})));
  const soonest = await collect(queue.soonest());
  expect(soonest.map(({ payload }) => payload)).toEqual(sent);
});

test("two groups, 300 messages: one process of a group is killed and comes back, one group retries", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const { stream } = queueKeys(name);
  const line = newLine({ codec: "string" });
  const retrying = line.getReliableQueue<string>(name, { group: "retrying", retry: [20] });
  const env = {
    REDIS: redisUrl(),
    QUEUE: name,
    OPTIONS: JSON.stringify({ group: "crashing", leaseTimeout: 2000 }),
    SUBSCRIBE: JSON.stringify({ concurrency: 5 }),
    MODE: "slow",
  };
  const done = new Map<string, number[]>();
  const workers: Promise<void>[] = [];
  const start = async () => {
    const child = startChild<WorkerMessage>(await bundle(worker), { env });
    await child.next(({ kind }) => kind === "ready");
    const listen = async () => {
      for await (const message of child.messages()) {
        if (message.kind !== "done") continue;
        done.set(message.payload, [...(done.get(message.payload) ?? []), message.attempt]);
      }
    };
    // A killed process does not exit with 0.
    workers.push(listen().catch(() => {}));
    return child;
  };
  const first = await start();
  const handled = new Map<string, number[]>();
  retrying.subscribe(
    (payload, { attempt }) => {
      handled.set(payload, [...(handled.get(payload) ?? []), attempt]);
      if (attempt === 1 && Number(payload) % 3 === 0) throw new Error("once more");
    },
    { concurrency: 10, onError: () => {} },
  );
  await retrying.poll();
  const sent = upTo(300).map(String);
  await retrying.offerMany(sent.map((payload) => ({ payload, delay: 10 })));
  await eventually(() => done.size >= 100, { within: 30_000 });
  await first.kill("SIGKILL");
  const second = await start();
  await eventually(() => done.size === 300, { within: 30_000 });
  await eventually(async () => (await redis.xlen(stream)) === 0);
  await second.kill("SIGTERM");
  await Promise.all(workers);

  for (const payload of sent) {
    const isRetried = Number(payload) % 3 === 0;
    expect(handled.get(payload)).toEqual(isRetried ? [1, 2] : [1]);
  }
  // At least once: messages that the killed process held may be handled again.
  const attempts = [...done.values()];
  const again = attempts.filter((some) => some.some((attempt) => attempt > 1));
  expect(Math.max(...attempts.flat())).toBeLessThanOrEqual(2);
  expect(again.length).toBeLessThanOrEqual(5);
  expect(await retrying.size()).toBe(0);
  expect(await retrying.deadLetters.size()).toBe(0);
});
