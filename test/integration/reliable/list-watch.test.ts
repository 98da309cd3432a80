import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import type { ScriptEvent } from "../../../src/lua/script.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { connectionName } from "../../../src/redis/client.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newOpenQueue, type TestQueue } from "../../helpers/open-queue.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** A reliable queue whose client is the active mover. */
function newReliable(name: string, options?: Parameters<typeof newOpenQueue>[1]): TestQueue {
  const queue = newOpenQueue(name, options);
  queue.open.startTransfer();
  queue.open.openReliable();
  return queue;
}

/** The payloads in the stream, oldest first. */
async function streamed(redis: Redis, { stream }: QueueKeys): Promise<string[]> {
  const entries = await redis.xrange(stream, "-", "+");
  return entries.map(([, fields]) => fields[fields.indexOf("p") + 1] ?? "");
}

/** The ids of the connections that block on the queue's LIST. */
async function watching(redis: Redis, name: string): Promise<string[]> {
  const clients = String(await redis.client("LIST")).split("\n");
  const ours = clients.filter(
    (client) =>
      client.includes(` name=${connectionName("blocking", name)} `) &&
      client.includes(" cmd=blmove "),
  );
  return ours.map((client) => /^id=(\d+)/.exec(client)?.[1] ?? "");
}

/** Waits until `count` connections watch. */
async function watchedBy(count: number, redis: Redis, name: string): Promise<void> {
  await eventually(async () => (await watching(redis, name)).length === count, {
    what: `${count} connections watch the LIST`,
  });
}

test("payloads that a plain client pushes arrive in the stream, in order", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const keys = queueKeys(name);
  await redis.rpush(name, "there", "before");
  newReliable(name);
  await watchedBy(1, redis, name);
  const all = ["there", "before"];
  expect(await streamed(redis, keys)).toEqual(all);

  await redis.rpush(name, "one");
  await eventually(async () => (await streamed(redis, keys)).length === 3);
  let runs = 0;
  const count = (ran: unknown): void => {
    if ((ran as ScriptEvent).script === "take-over") runs++;
  };
  subscribe("delayline:script", count);
  onTestFinished(() => void unsubscribe("delayline:script", count));
  const many = Array.from({ length: 250 }, (_, i) => `${i}`);
  await redis.rpush(name, ...many);
  await newLine({ codec: "string" }).getBlockingQueue(name).put("put");
  all.push("one", ...many, "put");
  await eventually(async () => (await streamed(redis, keys)).length === all.length);
  expect(await streamed(redis, keys)).toEqual(all);
  expect(await redis.exists(name)).toBe(0);
  // Many at a time.
  expect(runs).toBeLessThan(20);
});

test("the LIST of a paused queue is not watched until the queue is resumed", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { open } = newReliable(name);
  await watchedBy(1, redis, name);
  await open.pauses.pause();
  await watchedBy(0, redis, name);
  await redis.rpush(name, "meanwhile");
  await open.pauses.resume();
  await eventually(async () => (await streamed(redis, queueKeys(name))).length === 1);
  await watchedBy(1, redis, name);
});

test("a client on stand-by does not watch until it is the active mover", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const keys = queueKeys(name);
  const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue(name);
  const first = newReliable(name);
  await watchedBy(1, redis, name);
  const [idOfFirst] = await watching(redis, name);
  const second = newReliable(name);
  await watchedBy(2, redis, name);
  // Each deadline may make one of the clients stand by.
  let count = 0;
  await eventually(async () => {
    await queue.offer(`${count++}`, 10);
    await eventually(async () => (await streamed(redis, keys)).length === count);
    return (await watching(redis, name)).length === 1;
  });
  await redis.rpush(name, "pushed");
  await eventually(async () => (await streamed(redis, keys)).at(-1) === "pushed");

  // When the watching client has left, the other one moves and watches.
  const [watcher] = await watching(redis, name);
  await (watcher === idOfFirst ? first : second).close();
  await watchedBy(1, redis, name);
  expect(await watching(redis, name)).not.toEqual([watcher]);
});

test("a client on stand-by takes over the LIST if nobody watches", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const keys = queueKeys(name);
  const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue(name);
  newReliable(name);
  await watchedBy(1, redis, name);
  // Another process moves, such as an older release, which pushes to the LIST.
  await eventually(async () => {
    await queue.offer("x", 10);
    await redis.set(keys.mover, "another");
    await redis.del(keys.timeouts);
    return (await watching(redis, name)).length === 0;
  });
  await redis.rpush(name, "by another");
  await queue.offer("due", 10);
  await redis.del(keys.timeouts);
  await eventually(async () => (await streamed(redis, keys)).includes("by another"));
});

test("a killed connection loses nothing", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const keys = queueKeys(name);
  newReliable(name, { mayFail: true });
  const payloads = Array.from({ length: 40 }, (_, i) => `${i}`);
  for (const payload of payloads) {
    const [id] = await watching(redis, name);
    const killing = id === undefined ? undefined : redis.client("KILL", "ID", id);
    await Promise.all([redis.rpush(name, payload), killing]);
  }
  await eventually(async () => (await streamed(redis, keys)).length >= payloads.length);
  expect(await streamed(redis, keys)).toEqual(payloads);
  expect(await redis.exists(name)).toBe(0);
});

test("a refusal is reported once, and pushed messages are taken over when it is repaired", async () => {
  const server = await startOwnServer();
  const [redis, name] = [newRedis(server.url), uniqueName()];
  const { errors } = newReliable(name, { url: server.url, mayFail: true });
  await watchedBy(1, redis, name);
  await redis.set(name, "no list");
  await eventually(() => errors.length > 0);
  expect(errors.map(({ message }) => message)).toEqual([
    expect.stringContaining(`cannot take over what was pushed to the LIST of queue "${name}"`),
  ]);
  await redis.multi().del(name).rpush(name, "pushed").exec();
  await eventually(async () => (await streamed(redis, queueKeys(name))).length === 1);
  expect(errors.length).toBe(1);
});

test("closing ends the blocking call at once", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { close } = newReliable(name);
  await watchedBy(1, redis, name);
  // A blocking call near its end proves nothing.
  const [id] = await watching(redis, name);
  await redis.client("UNBLOCK", Number(id));
  await watchedBy(1, redis, name);
  const startedAt = performance.now();
  await close();
  // Much earlier than the end of the blocking call.
  expect(performance.now() - startedAt).toBeLessThan(4000);
  expect(await watching(redis, name)).toEqual([]);
});

test("payloads pushed while the watch closes are not lost", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const { close } = newReliable(name);
  await watchedBy(1, redis, name);
  await Promise.all([close(), redis.rpush(name, "pushed")]);
  const [inList, inStream] = [await redis.llen(name), await redis.xlen(queueKeys(name).stream)];
  expect(inList + inStream).toBe(1);
  expect(await watching(redis, name)).toEqual([]);
});

test("full memory is not reported as a trouble of the watch, since nobody can push", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  await redis.config("SET", "maxmemory-policy", "noeviction");
  const name = uniqueName();
  const line = newLine({ redis: server.url });
  await line.getReliableQueue(name).offer("message", 0);
  await watchedBy(1, redis, name);

  await redis.config("SET", "maxmemory", "1");
  const refused = async () =>
    Number(/cmdstat_blmove:.*rejected_calls=(\d+)/.exec(await redis.info("commandstats"))?.[1]);
  await eventually(async () => (await refused()) > 1);
  expect(line.errors).toEqual([]);

  await redis.config("SET", "maxmemory", "0");
  await watchedBy(1, redis, name);
});
