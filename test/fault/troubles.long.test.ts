import { expect, test } from "vitest";
import { RedisError } from "../../src/index.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { upTo } from "../helpers/numbers.ts";

/*
 * A client in trouble reports the trouble once, and its end once. The log should show what is wrong, not how many
 * attempts failed.
 */

/** Three queues with every kind of background work: transfers, takes, subscriptions, a loop. */
async function busyLine(url: string) {
  const line = newLineThatMayFail({ redis: url, codec: "json" });
  const names = upTo(3).map(() => uniqueName("trouble"));
  const received: unknown[] = [];
  for (const name of names) {
    const queue = line.getBlockingQueue(name);
    queue.subscribe((message) => received.push(message), { concurrency: 2 });
    void (async () => {
      for await (const message of queue) received.push(message);
    })();
  }
  const offerToAll = () =>
    Promise.all(names.map((name) => line.getDelayedQueue(name).offer("message", 0)));
  await offerToAll();
  await eventually(() => received.length === 3);
  return { line, names, received, offerToAll };
}

/** Resolves when Redis has refused `count` more commands because of a key's type. */
async function refusedAgain(redis: ReturnType<typeof newRedis>, count: number): Promise<void> {
  const refused = async () => {
    const stats = await redis.info("errorstats");
    return Number(/errorstat_WRONGTYPE:count=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  const before = await refused();
  await eventually(async () => (await refused()) >= before + count, { within: 15_000 });
}

const messagesOf = ({ errors }: TestLine) => errors.map(({ message }) => message);

test("Redis goes away and comes back: 1 error and 1 recovered, with 3 queues", async () => {
  const server = await startOwnServer();
  const { line, received, offerToAll } = await busyLine(server.url);
  await server.kill();
  await eventually(() => line.errors.length > 0);
  // Every kind of work has failed several times.
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  expect(line.recoveries).toEqual([]);
  await server.restart();
  await eventually(() => line.recoveries.length > 0, { within: 15_000 });
  await offerToAll();
  await eventually(() => received.length === 6);

  expect(messagesOf(line)).toEqual([
    `cannot reach Redis: connect ECONNREFUSED 127.0.0.1:${server.port}; start the server, or correct host and port`,
  ]);
  expect(line.errors[0]).toBeInstanceOf(RedisError);
  expect(line.recoveries).toEqual([{ error: line.errors[0], duration: expect.any(Number) }]);
  expect(line.recoveries[0]?.duration).toBeGreaterThan(3_500);

  // The next outage is reported again.
  await server.kill();
  await eventually(() => line.errors.length === 2);
  await server.restart();
  await eventually(() => line.recoveries.length === 2, { within: 15_000 });
  expect(line.errors).toHaveLength(2);
});

test("Redis is absent at first: 1 error, and 1 recovered when it comes", async () => {
  const server = await startOwnServer();
  await server.kill();
  const line = newLineThatMayFail({ redis: server.url });
  const names = upTo(3).map(() => uniqueName("trouble"));
  const takes = names.map((name) => line.getBlockingQueue(name).take());
  await eventually(() => line.errors.length > 0);
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  await server.restart();
  const producer = newLine({ redis: server.url, transfer: false });
  for (const name of names) await producer.getBlockingQueue(name).put(name);
  expect(await Promise.all(takes)).toEqual(names);
  await eventually(() => line.recoveries.length > 0, { within: 15_000 });
  expect(messagesOf(line)).toEqual([
    `cannot reach Redis: connect ECONNREFUSED 127.0.0.1:${server.port}; start the server, or correct host and port`,
  ]);
  expect(line.recoveries).toHaveLength(1);
});

test("a refusal: 1 error for each queue, and 1 recovered when the cause is gone", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const { line, names, received } = await busyLine(server.url);
  const [broken = "", other = ""] = names;
  // A loop awaits its take, which throws there. Nobody awaits the take of a subscription.
  await redis.del(broken, other);
  const keys = [broken, other].map((name) => `redisson_delay_queue_timeout:{${name}}`);
  for (const key of keys) await redis.set(key, "no ZSET");
  for (const name of [broken, other]) {
    await redis.publish(`redisson_delay_queue_channel:{${name}}`, "0");
  }
  await eventually(() => line.errors.length === 2);
  // The client keeps trying meanwhile.
  await refusedAgain(redis, 10);
  expect(line.errors).toMatchObject([{ reply: "WRONGTYPE" }, { reply: "WRONGTYPE" }]);
  for (const name of [broken, other]) {
    expect(messagesOf(line).filter((message) => message.includes(`"${name}"`))).toHaveLength(1);
  }
  await redis.del(...keys);
  await eventually(() => line.recoveries.length === 2, { within: 15_000 });
  expect(line.errors).toHaveLength(2);
  expect(new Set(line.recoveries.map(({ error }) => error))).toEqual(new Set(line.errors));
  expect(received).toHaveLength(3);
});

test("refused takes of a subscription: 1 error, and 1 recovered even if no message comes", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const line = newLineThatMayFail({ redis: server.url, transfer: false });
  const name = uniqueName("trouble");
  await redis.set(name, "no list");
  line.getBlockingQueue(name).subscribe(() => {}, { concurrency: 3 });
  await eventually(() => line.errors.length === 1);
  await refusedAgain(redis, 5);
  await redis.del(name);
  await eventually(() => line.recoveries.length === 1, { within: 10_000 });
  expect(line.errors).toMatchObject([{ code: "REDIS", reply: "WRONGTYPE" }]);
});

test("two refused subscriptions of a queue: 1 error, and 1 recovered when the second is closed", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const line = newLineThatMayFail({ redis: server.url, transfer: false });
  const name = uniqueName("trouble");
  await redis.set(name, "no list");
  const queue = line.getBlockingQueue(name);
  const [one, other] = [queue.subscribe(() => {}), queue.subscribe(() => {})];
  await eventually(() => line.errors.length > 0);
  await one.close();
  await refusedAgain(redis, 3);
  expect(line.errors).toMatchObject([{ code: "REDIS", reply: "WRONGTYPE" }]);
  expect(line.recoveries).toEqual([]);
  await other.close();
  await eventually(() => line.recoveries.length > 0);
  expect(line.recoveries).toMatchObject([{ error: line.errors[0] }]);
  expect(line.errors).toHaveLength(1);
});

test("a cut connection is reported, even if the next one is there at once", async () => {
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const { line, names, received, offerToAll } = await busyLine(server.url);
  const [name = ""] = names;
  const list = String(await redis.client("LIST")).split("\n");
  const blocked = list.find((client) => client.includes(`:blocking:${name} `)) ?? "";
  await redis.client("KILL", "ID", /id=(\d+)/.exec(blocked)?.[1] ?? "");
  await eventually(() => line.recoveries.length === 1);
  expect(messagesOf(line)).toEqual([expect.stringContaining(`cannot take from queue "${name}": `)]);
  await offerToAll();
  await eventually(() => received.length === 6);
});

test("a refused question whether the queue is paused: 1 error, and 1 recovered", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  const rights = ["on", ">secret", "~*", "&*", "+@all"];
  await admin.acl("SETUSER", "taker", ...rights, "-exists");
  const redis = { port: server.port, username: "taker", password: "secret" };
  const line = newLineThatMayFail({ redis, transfer: false });
  let recovered = 0;
  line.on("recovered", ({ error }) => {
    if (error.message.includes("is paused")) recovered++;
  });
  const taking = line.getBlockingQueue(uniqueName()).take();
  void taking.catch(() => {});
  const refused = async () => {
    const stats = await admin.info("commandstats");
    return Number(/cmdstat_exists:.*rejected_calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  await eventually(async () => (await refused()) >= 5);
  const asked = messagesOf(line).filter((message) => message.includes("is paused"));
  expect(asked).toHaveLength(1);
  expect(recovered).toBe(0);
  await admin.acl("SETUSER", "taker", "+exists");
  await eventually(() => recovered === 1);
});

test("a refusal is over when the work stops: a watch is switched off, a subscription is closed", async () => {
  const server = await startOwnServer();
  const admin = newRedis(server.url);
  await admin.acl("SETUSER", "some", "on", ">secret", "~*", "&*", "+@all", "-blmove");
  const redis = { port: server.port, username: "some", password: "secret" };
  const line = newLineThatMayFail({ redis });
  const [reliable, plain] = [uniqueName("watched"), uniqueName("handled")];

  const watched = line.getReliableQueue(reliable);
  await eventually(() => line.errors.length === 1);
  expect(line.errors).toMatchObject([{ reply: "NOPERM" }]);
  // While the queue is paused, nobody watches the LIST.
  await watched.pause();
  await eventually(() => line.recoveries.length === 1);
  await watched.resume();
  await eventually(() => line.errors.length === 2);

  await admin.set(plain, "no list");
  const handled = line.getBlockingQueue(plain, { transfer: false });
  const subscription = handled.subscribe(() => {});
  await eventually(() => line.errors.length === 3);
  await subscription.close();
  await eventually(() => line.recoveries.length === 2);
  expect(line.recoveries.map(({ error }) => error)).toEqual([line.errors[0], line.errors[2]]);
  expect(line.errors[2]).toMatchObject({ reply: "WRONGTYPE" });

  // Closing the client is not a recovery.
  handled.subscribe(() => {});
  await eventually(() => line.errors.length === 4);
  await line.close();
  expect(line.recoveries).toHaveLength(2);
});
