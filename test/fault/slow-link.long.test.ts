import { expect, test } from "vitest";
import { newLine, newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { repeated } from "../helpers/ledger.ts";
import { upTo } from "../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../helpers/redis.ts";
import { Roles } from "../helpers/roles.ts";
import { startProxy, type TcpProxy } from "../helpers/tcp-proxy.ts";

/*
 * A link that is slow, but healthy: bytes flow all the time, and a large reply or request takes longer than a dead
 * connection would be given.
 */

const kB = 1000;
const MB = 1_000_000;

/** A proxy in front of the shared Redis that carries so many bytes a second each way, on each connection. */
async function startSlowLink(rate: { readonly request?: number; readonly reply?: number }) {
  const proxy = await startProxy(redisUrl());
  Object.assign(proxy.rate, rate);
  return { proxy, roles: new Roles(proxy) };
}

/** Opened over `proxy`; fails the test with any error event. */
function slowLine({ url }: TcpProxy, options = {}) {
  return newLine({ redis: url, maxPayloadBytes: 64 * MB, ...options });
}

/** A client beside the slow link. */
function producerBeside() {
  return newLine({ transfer: false, maxPayloadBytes: 64 * MB });
}

test("many large messages at once reach a plain consumer, each once", async () => {
  const { proxy, roles } = await startSlowLink({ reply: 2 * MB });
  const name = uniqueName();
  const received: number[] = [];
  slowLine(proxy)
    .getBlockingQueue<{ n: number }>(name)
    .subscribe(({ n }) => received.push(n), { concurrency: 100 });
  await eventually(() => roles.all("blocking").length === 1);
  const before = roles.only("blocking");
  const text = "w".repeat(100 * kB);
  const offers = upTo(300).map((n) => ({ payload: { n, text }, delay: 500 }));
  await producerBeside().getDelayedQueue(name).offerMany(offers);
  await eventually(() => received.length >= 300, { within: 60_000 });
  expect(received.toSorted((a, b) => a - b)).toEqual(upTo(300));
  expect(roles.only("blocking")).toBe(before);
});

test("a message of a megabyte reaches a plain consumer over a link of 150 kB/s, and get reads it", async () => {
  const { proxy, roles } = await startSlowLink({ request: 150 * kB, reply: 150 * kB });
  const name = uniqueName();
  const line = slowLine(proxy);
  const received: string[] = [];
  line.getBlockingQueue<string>(name).subscribe((message) => received.push(message));
  await eventually(() => roles.all("blocking").length === 1);
  const queue = producerBeside().getDelayedQueue<string>(name);
  const text = "w".repeat(MB);
  const { id } = await queue.offer(text, 3_600_000);
  // Each takes seven seconds, longer than a call may take that gets nothing.
  const get = line.getDelayedQueue<string>(name).get(id);
  await queue.offer(text, 0);
  expect((await get)?.payload).toBe(text);
  await eventually(() => received.length > 0, { within: 20_000 });
  expect(received).toEqual([text]);
});

test("a reply larger than what is sent in a lease reaches a reliable consumer, and no message comes twice", async () => {
  const { proxy } = await startSlowLink({ reply: 4 * MB });
  const name = uniqueName();
  const received: [number, number][] = [];
  const queue = producerBeside().getReliableQueue<{ n: number; text: string }>(name);
  const text = "w".repeat(14 * MB);
  // They are there before the first read, which gets them all.
  for (const n of upTo(4)) await queue.offer({ n, text }, 0);
  slowLine(proxy)
    .getReliableQueue<{ n: number }>(name, { leaseTimeout: 5000 })
    .subscribe(({ n }, { attempt }) => void received.push([n, attempt]), { concurrency: 10 });
  await eventually(() => received.length >= 4, { within: 60_000 });
  await eventually(async () => (await queue.stats()).inFlight === 0);
  expect(received).toEqual(upTo(4).map((n) => [n, 1]));
});

test("a large upload goes out once, over one connection", async () => {
  const { proxy, roles } = await startSlowLink({ request: MB, reply: MB });
  const name = uniqueName();
  const queue = slowLine(proxy, { transfer: false }).getDelayedQueue<string>(name);
  const offers = upTo(240).map((n) => ({
    payload: String(n).padEnd(100 * kB, "w"),
    delay: 60_000,
  }));
  const results = await queue.offerMany(offers);
  expect(results.map(({ outcome }) => outcome)).toEqual(upTo(240).map(() => "added"));
  const carried = proxy.connections.reduce((sum, { carried: { request } }) => sum + request, 0);
  expect(carried).toBeLessThan(25 * MB);
  expect(proxy.acceptedCount).toBeLessThan(5);
  expect(roles.all("commands")).toHaveLength(1);
  expect(await newRedis().zcard(`redisson_delay_queue_timeout:{${name}}`)).toBe(240);
});

test("a single offer of a megabyte goes out once, though the kernel takes it whole at once", async () => {
  const { proxy, roles } = await startSlowLink({ request: 120 * kB });
  const name = uniqueName();
  const queue = slowLine(proxy, { transfer: false }).getDelayedQueue<string>(name);
  await queue.size();
  const connection = roles.only("commands");
  await queue.offer("w".repeat(MB), 60_000);
  expect(roles.only("commands")).toBe(connection);
  expect(connection.carried.request).toBeLessThan(1.1 * MB);
});

test("a long pipeline of small calls is answered to its end", async () => {
  const { proxy } = await startSlowLink({ request: 100 * kB, reply: 5 * kB });
  const name = uniqueName();
  const queue = slowLine(proxy, { transfer: false }).getDelayedQueue<string>(name);
  await producerBeside().getDelayedQueue<string>(name).offer("a", 60_000, { key: "order:7" });
  const verdicts = await queue.cancelMany(upTo(20_000).map((n) => `order:${n}`));
  expect(verdicts.filter(Boolean)).toHaveLength(1);
  expect(proxy.acceptedCount).toBeLessThan(5);
});

test("a client that was lent gets a large reply over a slow link", async () => {
  const { proxy } = await startSlowLink({ reply: 150 * kB });
  const name = uniqueName();
  const { id } = await producerBeside().getDelayedQueue<string>(name).offer("w".repeat(MB), 60_000);
  const line = newLine({ redis: newRedis(proxy.url), transfer: false });
  expect((await line.getDelayedQueue<string>(name).get(id))?.payload).toHaveLength(MB);
});

test("a connection that dies in the middle of a large reply is found as soon as any other", async () => {
  const { proxy, roles } = await startSlowLink({ reply: 200 * kB });
  const name = uniqueName();
  const line = newLineThatMayFail({ redis: proxy.url });
  const received: string[] = [];
  line
    .getReliableQueue<string>(name, { leaseTimeout: 3000 })
    .subscribe((message) => void received.push(message));
  await eventually(() => roles.all("blocking").length === 2);
  const queue = producerBeside().getReliableQueue<string>(name);
  await queue.offer("w".repeat(MB), 0);
  const isReading = () => roles.all("blocking").find((one) => one.carried.reply > 300 * kB);
  await eventually(() => isReading() !== undefined, { within: 20_000 });
  const silent = isReading();
  const before = roles.all("blocking");
  silent?.swallow();
  const silentAt = performance.now();
  const isReplaced = () => roles.all("blocking").some((one) => !before.includes(one));
  await eventually(isReplaced, { within: 20_000 });
  // 4 s on a quiet machine.
  expect(performance.now() - silentAt).toBeLessThan(12_000);
  await eventually(() => received.length > 0, { within: 30_000 });
  expect(repeated(received)).toEqual([]);
});

test("a call whose reply trickles ends at ten times callTimeout", async () => {
  const { proxy } = await startSlowLink({});
  const name = uniqueName();
  const { id } = await producerBeside().getDelayedQueue<string>(name).offer("w".repeat(MB), 60_000);
  const line = newLineThatMayFail({ redis: proxy.url, transfer: false, callTimeout: 600 });
  const queue = line.getDelayedQueue<string>(name);
  await queue.size();
  proxy.rate.reply = 400;
  const startedAt = performance.now();
  await expect(queue.get(id)).rejects.toMatchObject({ code: "REDIS" });
  expect(performance.now() - startedAt).toBeGreaterThan(3000);
  expect(performance.now() - startedAt).toBeLessThan(12_000);
});
