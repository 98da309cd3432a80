/** `closeQueue`: one queue is closed while its client stays open. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test } from "vitest";
import type { QueueHandle } from "../../../src/handles/queue-handle.ts";
import { ClosedError, LeftRunningError } from "../../../src/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { upTo } from "../../helpers/numbers.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

let name: string;
let line: TestLine;

beforeEach(() => {
  name = uniqueName("one");
  line = newLine();
});

test("a later call may shorten the wait for a handler", async () => {
  const mayFail = newLineThatMayFail();
  const [gate, handled] = [new Gate(), new Gate()];
  mayFail.getReliableQueue(name).subscribe(async () => {
    handled.open();
    await gate.opened;
  });
  await line.getReliableQueue(name).offer(1, 0);
  await handled.opened;
  const first = mayFail.closeQueue(name);
  // Without its bound it would wait for the handler, which waits for this.
  await mayFail.closeQueue(name, { handlerTimeout: 10 });
  await first;
  gate.open();
  expect(mayFail.errors).toMatchObject([{ code: "LEFT_RUNNING" }]);
});

test("its handles, waits and loops end, and the others go on", async () => {
  const other = uniqueName("one");
  const delayed = line.getDelayedQueue(name);
  const ready = line.getBlockingQueue(name);
  const reliable = line.getReliableQueue(other);
  const taking = expect(ready.take()).rejects.toThrow(new ClosedError(`queue "${name}"`));
  const taken = reliable.take();
  const looping = (async () => {
    for await (const _ of ready);
  })();
  ready.subscribe(() => {});

  await line.closeQueue(name);
  await taking;
  await looping;
  await expect(delayed.offer(1, 0)).rejects.toThrow(new ClosedError(`queue "${name}"`));
  await expect(ready.poll()).rejects.toThrow(ClosedError);
  expect(() => ready.subscribe(() => {})).toThrow(ClosedError);

  await reliable.offer("still here", 0);
  expect((await taken).payload).toBe("still here");
  expect([...line.counters.keys()]).toEqual([other]);
});

test("it waits for the handlers of the queue, and for no others", async () => {
  const other = uniqueName("one");
  const [gate, otherGate] = [new Gate(), new Gate()];
  const started: string[] = [];
  const signals: AbortSignal[] = [];
  for (const [queueName, { opened }] of [[name, gate] as const, [other, otherGate] as const]) {
    const queue = line.getReliableQueue(queueName);
    await queue.offer(1, 0);
    queue.subscribe(async (_, { signal }) => {
      started.push(queueName);
      signals.push(signal);
      await opened;
      await line.getDelayedQueue(other).offer("by the handler", 60_000);
    });
  }
  await eventually(() => started.length === 2);
  let isClosed = false;
  const closing = line.closeQueue(name).then(() => (isClosed = true));
  await eventually(() => signals[started.indexOf(name)]?.aborted === true);
  await sleep(50);
  expect(isClosed).toBe(false);
  gate.open();
  await closing;
  expect(signals[started.indexOf(other)]?.aborted).toBe(false);
  // It was acknowledged.
  expect((await line.stats(name)).inFlight).toBe(0);
  expect(await line.getDelayedQueue(other).size()).toBe(1);
  otherGate.open();
});

test("handlerTimeout limits that wait", async () => {
  const troubled = newLineThatMayFail();
  const [started, gate] = [new Gate(), new Gate()];
  const queue = troubled.getBlockingQueue(name);
  await queue.put(1);
  queue.subscribe(async () => {
    started.open();
    await gate.opened;
  });
  await started.opened;
  await troubled.closeQueue(name, { handlerTimeout: 20 });
  await eventually(() => troubled.errors.length === 1);
  expect(troubled.errors[0]).toBeInstanceOf(LeftRunningError);
  expect(troubled.errors[0]).toMatchObject({ queue: name, count: 1 });
  gate.open();
});

test("a message that arrives meanwhile stays in the queue", async () => {
  const ready = line.getBlockingQueue<number>(name);
  const taken: number[] = [];
  ready.subscribe((payload) => void taken.push(payload));
  const redis = newRedis();
  const pushing = redis.rpush(name, ...upTo(50).map((i) => Buffer.from([i])));
  await line.closeQueue(name);
  await pushing;
  const left = await newLine({ transfer: false }).getBlockingQueue<number>(name).readAll();
  expect([...taken, ...left].toSorted((a, b) => a - b)).toEqual(upTo(50));
});

test("another handle opens it again, also while it is being closed", async () => {
  const gate = new Gate();
  const started = new Gate();
  const queue = line.getBlockingQueue(name, { codec: "json" });
  await queue.put("first");
  queue.subscribe(async () => {
    started.open();
    await gate.opened;
  });
  await started.opened;
  const closing = line.closeQueue(name);
  // Nothing of the former handles' options is left.
  const again = line.getDelayedQueue(name, { codec: "string" });
  await again.offer("second", 0);
  const next = line.getBlockingQueue(name).take();
  gate.open();
  await closing;
  expect(await next).toBe("second");
  await again.offer("third", 0);
  expect(await line.getBlockingQueue(name).take()).toBe("third");
});

test("it may be called twice, for a queue that is not open, and beside close", async () => {
  await line.closeQueue(name);
  line.getBlockingQueue(name).subscribe(() => {});
  await Promise.all([line.closeQueue(name), line.closeQueue(name)]);
  line.getReliableQueue(name).subscribe(() => {});
  await Promise.all([line.closeQueue(name), line.close()]);
  await line.closeQueue(name);
  await expect(line.closeQueue(name, { timeout: 1 } as never)).rejects.toThrow(
    new TypeError(
      'close option must be one of handlerTimeout, got "timeout"; did you mean handlerTimeout?',
    ),
  );
});

test("it ends while Redis is away", async () => {
  const proxy = await startProxy((await startOwnServer()).url);
  const away = newLineThatMayFail({ redis: proxy.url, unreachableTimeout: 200, callTimeout: 500 });
  const queue = away.getReliableQueue(name);
  await queue.offer(1, 60_000);
  queue.subscribe(() => {});
  const ready = away.getBlockingQueue(`${name}-plain`);
  void ready.take().catch(() => {});
  await ready.size();
  await proxy.close();
  await Promise.all([away.closeQueue(name), away.closeQueue(`${name}-plain`)]);
});

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

test("nothing stays of a thousand queues, one per tenant", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const server = await startOwnServer();
  const redis = newRedis(server.url);
  const tenants = newLine({ redis: server.url });
  const connections = async () =>
    ((await redis.client("LIST")) as string).match(/ name=delayline:\S+/g)?.toSorted();
  const handles: WeakRef<QueueHandle>[] = [];

  const serve = async (i: number) => {
    const tenant = `tenant-${i}`;
    const options = i % 20 === 0 ? { partitions: 2 } : {};
    if (i % 2 === 0) {
      const queue = tenants.getReliableQueue(tenant, options);
      handles.push(new WeakRef(queue));
      const handled = new Promise((resolve) => queue.subscribe(resolve));
      await queue.offer(i, 0);
      await handled;
    } else {
      const ready = tenants.getBlockingQueue(tenant, options);
      const delayed = tenants.getDelayedQueue(tenant);
      handles.push(new WeakRef(ready), new WeakRef(delayed));
      const handled = new Promise((resolve) => ready.subscribe(resolve));
      await delayed.offer(i, 0);
      await handled;
    }
    await tenants.closeQueue(tenant);
  };

  await serve(0);
  await serve(1);
  const before = { timers: timers(), connections: await connections() };
  for (let i = 2; i < 1000; i += 20) await Promise.all(upTo(20).map((k) => serve(i + k)));

  expect(tenants.counters.size).toBe(0);
  await eventually(async () => {
    expect(await connections()).toEqual(before.connections);
    expect(await redis.pubsub("CHANNELS")).toEqual([]);
  });
  await eventually(() => timers() <= before.timers);
  await eventually(() => {
    collect();
    expect(handles.filter((handle) => handle.deref() !== undefined).length).toBeLessThan(20);
  });
  // Redis still has what was offered, and the client works.
  expect(await redis.exists(queueKeys("tenant-998").stream)).toBe(1);
  await tenants.getDelayedQueue("tenant-1").offer(1, 60_000);
}, 120_000);
