import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { RestoredEvent } from "../../src/events.ts";
import type { DelaylineOptions } from "../../src/index.ts";
import { partsOf } from "../../src/handles/queue-handle.ts";
import { BOUND } from "../../src/redis/fuse.ts";
import { newLineThatMayFail, type TestLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer, type OwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { backUp } from "../helpers/restorable.ts";

const HANDLED = 400;
const CANCELLED = 200;

/** A client that records how often Redis went back. */
function watch(server: OwnServer, options: DelaylineOptions = {}) {
  const line: TestLine = newLineThatMayFail({ redis: server.url, ...options });
  const restored: RestoredEvent[] = [];
  line.on("restored", (fallBack) => restored.push(fallBack));
  return { line, restored };
}

/** Opens a queue and handles its messages. */
function open(line: TestLine, kind: "plain" | "reliable", name: string) {
  const handled: number[] = [];
  const handler = (payload: number) => void handled.push(payload);
  if (kind === "reliable") {
    const queue = line.getReliableQueue<number>(name);
    queue.subscribe(handler, { concurrency: 10 });
    return { queue, handled };
  }
  line.getBlockingQueue<number>(name).subscribe(handler, { concurrency: 10 });
  return { queue: line.getDelayedQueue<number>(name), handled };
}

/** Messages that are handled, and others that are cancelled, all after a backup; then Redis is restored. */
async function restoreTenSecondsLater(kind: "plain" | "reliable", options: DelaylineOptions) {
  const server = await startOwnServer();
  const { line, restored } = watch(server, options);
  const { queue, handled } = open(line, kind, uniqueName());
  const messages = Array.from({ length: HANDLED + CANCELLED }, (_, payload) => ({
    payload,
    delay: payload < HANDLED ? 1500 : 5000,
  }));
  const results = await queue.offerMany(messages);
  const restore = await backUp(server);
  expect(handled).toEqual([]);
  const ids = results.slice(HANDLED).map(({ id }) => id);
  expect((await queue.cancelMany(ids)).every(Boolean)).toBe(true);
  await eventually(() => handled.length === HANDLED);
  // What was shown lately may be lost in a failover, too.
  await sleep(BOUND + 1000);
  await restore();
  return { server, line, queue, handled, restored };
}

test.each(["plain", "reliable"] as const)(
  "%s: a restored backup is told once, and with onRestore: pause nothing comes until somebody resumes",
  async (kind) => {
    const { queue, handled, restored } = await restoreTenSecondsLater(kind, {
      onRestore: "pause",
    });
    await eventually(() => restored.length === 1);
    expect(restored).toMatchObject([{ queues: [queue.name], isPausing: true }]);
    await eventually(async () => (await queue.stats()).isPaused);
    const stats = await queue.stats();
    expect(stats).toMatchObject({ overdue: HANDLED + CANCELLED, ready: 0 });
    expect(stats.pauseReason).toMatch(/^Redis went back from .*Z to an older copy/);
    expect(handled.length).toBe(HANDLED);

    await queue.resume();
    await eventually(() => handled.length === 2 * HANDLED + CANCELLED);
    expect(restored.length).toBe(1);
  },
);

test("a restored backup is told once by default, and all comes again", async () => {
  const { handled, restored, queue } = await restoreTenSecondsLater("plain", {});
  await eventually(() => handled.length === 2 * HANDLED + CANCELLED);
  expect(restored).toMatchObject([{ isPausing: false, foundAt: undefined }]);
  // The log is of the older copy, too: this is the first entry since. It is written beside everything else.
  const { activity } = partsOf(queue);
  await eventually(async () => (await activity.read()).length > 0);
  expect(await activity.read()).toMatchObject([{ what: "restored", by: undefined }]);
});

test("messages that were ready in the backup are not taken before somebody resumes", async () => {
  const server = await startOwnServer();
  const { line, restored } = watch(server, { onRestore: "pause" });
  const name = uniqueName();
  const queue = line.getReliableQueue<number>(name);
  await queue.offerMany(Array.from({ length: 20 }, (_, payload) => ({ payload, delay: 0 })));
  await eventually(async () => (await queue.stats()).ready === 20);
  const restore = await backUp(server);
  // A task claims at most once in 200 ms at first.
  await sleep(500);
  const { handled } = open(line, "reliable", name);
  await eventually(() => handled.length === 20);
  await queue.offer(20, 0);
  await eventually(() => handled.length === 21);
  await sleep(BOUND + 1000);
  await restore();
  await eventually(() => restored.length === 1);
  expect(restored[0]?.foundAt).toBeLessThan(restored[0]?.knownAt ?? 0);
  await eventually(async () => (await queue.stats()).isPaused);
  expect(await queue.stats()).toMatchObject({ ready: 20, inFlight: 0 });
  expect(handled.length).toBe(21);
  await queue.resume();
  await eventually(() => handled.length === 41);
});

test("a restart that loses less than a failover may is not told", async () => {
  const server = await startOwnServer();
  const { line, restored } = watch(server, { onRestore: "pause" });
  const { queue, handled } = open(line, "plain", uniqueName());
  await queue.offer(0, 0);
  await eventually(() => handled.length === 1);
  // A claim comes at most once in 100 ms, and is the last thing that Redis forgets.
  await sleep(BOUND + 1000);
  const restore = await backUp(server);
  await queue.offer(1, 0);
  await eventually(() => handled.length === 2);
  await restore();
  await queue.offer(2, 0);
  await eventually(() => handled.length === 3);
  expect(restored).toEqual([]);
});

test("a claim that is gone, or all data, is not told", async () => {
  const server = await startOwnServer({ appendOnly: true });
  const { line, restored } = watch(server, { onRestore: "pause" });
  const name = uniqueName();
  const { queue, handled } = open(line, "plain", name);
  await queue.offer(0, 0);
  await eventually(() => handled.length === 1);
  await sleep(BOUND + 1000);
  const redis = newRedis(server.url);
  for (const remove of [() => redis.del(`delayline_mover:{${name}}`), () => redis.flushall()]) {
    await remove();
    await server.kill();
    await server.restart();
    const before = handled.length;
    await queue.offer(1, 0);
    await eventually(() => handled.length === before + 1);
  }
  expect(restored).toEqual([]);
});

test("a server's clock that is set back is not told, and claims keep growing", async () => {
  const server = await startOwnServer();
  const name = uniqueName();
  const redis = newRedis(server.url);
  const mover = `delayline_mover:{${name}}`;
  const claimedAt = async () => Number((await redis.get(mover))?.split("@")[1]);
  // As if the server's clock had been an hour ahead until now.
  await redis.set(mover, `another@${(Date.now() + 3_600_000) * 1000}`);
  const claims = [await claimedAt()];
  const { line, restored } = watch(server, { onRestore: "pause" });
  const { queue, handled } = open(line, "plain", name);
  while (claims.length < 4) {
    const last = claims.at(-1);
    // The longer nobody else claims, the rarer a task does.
    const isNew = async () => {
      // By then the first sweep has shown the claim of the time before.
      await queue.offer(0, 1000);
      return (await claimedAt()) !== last;
    };
    await eventually(isNew, { within: 10_000 });
    claims.push(await claimedAt());
  }
  expect(claims).toEqual(claims.toSorted((a, b) => a - b));
  await sleep(BOUND + 1000);
  await redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await queue.offer(4, 0);
  await eventually(() => handled.includes(4));
  expect(restored).toEqual([]);
});
