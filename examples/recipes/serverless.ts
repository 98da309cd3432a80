/**
 * Functions and routes offer and cancel; a worker elsewhere handles.
 *
 *   npx tsx examples/recipes/serverless.ts
 *
 * The page: docs/recipes/serverless.md.
 */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline, type DelayedQueue } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

interface Order {
  readonly id: number;
}

const [role, name = `orders-${process.pid}`] = process.argv.slice(2);

// lib/queues.ts of the application. `globalThis` outlives the reloads of a development server; a module does not.
const shared = globalThis as { delayline?: Delayline };

function orders(): DelayedQueue<Order> {
  shared.delayline ??= new Delayline({
    redis: process.env["REDIS_URL"] ?? "redis://localhost:6379",
    transfer: false, // one connection, no background work: a worker moves what is due
    callTimeout: 2_000, // less than the function's own limit
  });
  return shared.delayline.getDelayedQueue<Order>(name);
}

// app/orders/route.ts, or the handler of a function. It awaits the offer, and closes nothing.
async function POST(request: Request): Promise<Response> {
  const order = (await request.json()) as Order;
  const { deadline } = await orders().offer(order, 500, { key: `order:${order.id}` });
  return Response.json({ due: new Date(deadline) }, { status: 201 });
}

async function DELETE(request: Request): Promise<Response> {
  const id = new URL(request.url).searchParams.get("id") ?? "";
  return Response.json({ isCancelled: await orders().cancel(`order:${id}`) });
}

if (role === "worker") await work();
else await tryIt();

/** worker.ts: a process of its own, in a container or on a machine. */
async function work(): Promise<void> {
  const line = new Delayline({ redis: process.env["REDIS_URL"] ?? "redis://localhost:6379" });
  line.getBlockingQueue<Order>(name).subscribe((order) => void process.send?.(order), {
    concurrency: 10,
  });
  await once(process, "SIGTERM");
  await line.close();
}

async function tryIt(): Promise<void> {
  await using server = await startRedis();
  process.env["REDIS_URL"] = server.url;
  const worker = fork(new URL(import.meta.url), ["worker", name]);
  const handled: number[] = [];
  worker.on("message", ({ id }: Order) => void handled.push(id));

  const url = "http://shop.example/orders";
  for (let id = 1; id <= 20; id++) {
    const response = await POST(new Request(url, { method: "POST", body: JSON.stringify({ id }) }));
    assert.equal(response.status, 201);
  }
  const response = await DELETE(new Request(`${url}?id=7`, { method: "DELETE" }));
  assert.deepEqual(await response.json(), { isCancelled: true });

  const redis = new Redis(server.url);
  const clients = String(await redis.client("LIST"));
  // The application holds one connection, however many requests there were. The worker sends no commands of its own.
  const own = [...clients.matchAll(/^id=(\d+) .*name=delayline:commands/gm)];
  assert.equal(own.length, 1);
  while (handled.length < 19) await sleep(20);
  assert.ok(!handled.includes(7));

  // The platform freezes the process between two requests. Its connection may be gone when it thaws: the next call
  // opens another.
  await redis.client("KILL", "ID", own[0]?.[1] ?? "");
  await POST(new Request(url, { method: "POST", body: JSON.stringify({ id: 21 }) }));
  while (!handled.includes(21)) await sleep(20);
  console.log("19 orders timed out, one was cancelled, one came after the thaw");

  worker.kill("SIGTERM");
  assert.deepEqual(await once(worker, "exit"), [0, null]);
  redis.disconnect();
  // Only so that this program ends. A platform ends the process by itself.
  await shared.delayline?.close();
}
