import { EventEmitter, once } from "node:events";
import { Inject, Injectable, Module, type DynamicModule, type LoggerService } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { expect, expectTypeOf, onTestFinished, test } from "vitest";
import { BlockingQueue } from "../../../src/handles/blocking-queue.ts";
import { DelayedQueue } from "../../../src/handles/delayed-queue.ts";
import { PlainQueue } from "../../../src/handles/plain-queue.ts";
import { ReliableQueue } from "../../../src/handles/reliable-queue.ts";
import { Delayline, defineQueue, type Subscription } from "../../../src/index.ts";
import {
  DelaylineHealthIndicator,
  DelaylineModule,
  getDelaylineToken,
  getQueueToken,
  InjectDelayline,
  InjectDelaylineHealth,
  InjectQueue,
  type DelaylineHealth,
} from "../../../src/adapters/nestjs/index.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

/**
 * An application of these modules, which is closed when the test has finished. `logged` returns the library's log
 * lines.
 */
async function start(imports: NonNullable<DynamicModule["imports"]>, providers: unknown[] = []) {
  class App {}
  Module({ imports, providers: providers as [] })(App);
  const logged: unknown[][] = [];
  const logger: LoggerService = {
    log: (...args: unknown[]) => void logged.push(["log", ...args]),
    warn: (...args: unknown[]) => void logged.push(["warn", ...args]),
    error: (...args: unknown[]) => void logged.push(["error", ...args]),
  };
  const app = await NestFactory.createApplicationContext(App, { logger, abortOnError: false });
  // A second `app.close()` would call the hooks again.
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= app.close());
  onTestFinished(close);
  return { app, close, logged: () => logged.filter((words) => words.includes("Delayline")) };
}

test("a definition is registered, and injected by itself", async () => {
  const orders = defineQueue<number>(uniqueName(), { codec: "json" });
  const notices = defineQueue<number>(uniqueName(), { reliable: { group: "mail" } });
  class Shop {
    readonly orders: PlainQueue<number>;
    readonly notices: ReliableQueue<number>;

    constructor(one: PlainQueue<number>, other: ReliableQueue<number>) {
      [this.orders, this.notices] = [one, other];
    }
  }
  InjectQueue(orders)(Shop, undefined, 0);
  InjectQueue(notices)(Shop, undefined, 1);
  Injectable()(Shop);
  const { app } = await start(
    [
      DelaylineModule.forRoot({ redis: redisUrl() }),
      DelaylineModule.registerQueue(orders, notices),
    ],
    [Shop],
  );
  const shop = app.get(Shop);
  expect(shop.orders).toBeInstanceOf(PlainQueue);
  expect(shop.notices.group).toBe("mail");
  await shop.orders.offer(1, 0);
  expect(await shop.orders.take()).toBe(1);
  expect(app.get(getQueueToken(orders))).toBe(shop.orders);
});

test("a consumer handles messages; on shutdown its handler finishes, and may offer, before everything is closed", async () => {
  const name = uniqueName();
  const phases: string[] = [];
  const gate = new EventEmitter();

  class Shop {
    readonly orders: DelayedQueue<number>;
    subscription: Subscription | undefined;

    constructor(orders: DelayedQueue<number>) {
      this.orders = orders;
    }

    async onApplicationShutdown(): Promise<void> {
      // Requests may still offer: the server stops listening only after this.
      await this.orders.offer(3, 60_000);
      phases.push("offered");
    }
  }
  InjectQueue(name, "delayed")(Shop, undefined, 0);
  Injectable()(Shop);

  class Worker {
    readonly handled: number[] = [];
    readonly ready: BlockingQueue<number>;
    readonly line: Delayline;

    constructor(ready: BlockingQueue<number>, line: Delayline) {
      this.ready = ready;
      this.line = line;
    }

    onApplicationBootstrap(): void {
      this.ready.subscribe(async (order, { signal }) => {
        this.handled.push(order);
        if (order === 1) return;
        await once(gate, "open");
        phases.push(signal.aborted ? "finished, and was told to" : "finished");
      });
    }
  }
  InjectQueue(name, "blocking")(Worker, undefined, 0);
  InjectDelayline()(Worker, undefined, 1);
  Injectable()(Worker);

  const { app, close, logged } = await start(
    [
      DelaylineModule.forRoot({ redis: redisUrl() }),
      DelaylineModule.registerQueue({ name, kind: "delayed" }, { name, kind: "blocking" }),
    ],
    [Shop, Worker],
  );
  const [shop, worker] = [app.get(Shop), app.get(Worker)];
  expect(shop.orders).toBeInstanceOf(DelayedQueue);
  expect(worker.ready).toBeInstanceOf(BlockingQueue);
  await shop.orders.offer(1, 0);
  await shop.orders.offer(2, 20);
  await eventually(() => expect(worker.handled).toEqual([1, 2]));

  const closing = close().then(() => phases.push("closed"));
  await shop.orders.offer(4, 0);
  // The message is moved, but nobody takes it any more.
  await eventually(async () => (await worker.ready.size()) === 1);
  gate.emit("open");
  await closing;

  expect(phases).toEqual(["finished, and was told to", "offered", "closed"]);
  expect(worker.handled).toEqual([1, 2]);
  await expect(shop.orders.offer(5, 0)).rejects.toThrow("closed");
  expect(await newLine({ transfer: false }).getDelayedQueue(name).size()).toBe(1);
  expect(logged()).toEqual([]);
});

test("forRootAsync, options of a queue, and one token for a queue with one handle all work", async () => {
  class Config {
    readonly redis = redisUrl();
  }
  Injectable()(Config);
  class ConfigModule {}
  Module({ providers: [Config], exports: [Config] })(ConfigModule);
  const name = uniqueName();

  class Notices {
    readonly queue: ReliableQueue<string>;
    constructor(queue: ReliableQueue<string>) {
      this.queue = queue;
    }
  }
  Inject(getQueueToken(name))(Notices, undefined, 0);

  const { app } = await start(
    [
      DelaylineModule.forRootAsync({
        imports: [ConfigModule],
        inject: [Config],
        useFactory: async ({ redis }: Config) => ({ redis, codec: "json" as const }),
      }),
      DelaylineModule.registerQueue({ name, kind: "reliable", options: { group: "mail" } }),
    ],
    [Notices],
  );

  const { queue } = app.get(Notices);
  expect(queue).toBeInstanceOf(ReliableQueue);
  expect(app.get(getQueueToken(name, "reliable"))).toBe(queue);
  await queue.offer("hello", 0);
  await expect(queue.take()).resolves.toMatchObject({ payload: "hello", attempt: 1 });
  const groups = await newRedis().xinfo("GROUPS", `delayline_stream:{${name}}`);
  expect(groups).toEqual([expect.arrayContaining(["mail"])]);
});

test("two connections: queues, clients and health by name", async () => {
  const archive = await startOwnServer();
  const name = uniqueName();

  class Copier {
    readonly orders: DelayedQueue<number>;
    readonly copies: ReliableQueue<number>;
    readonly line: Delayline;
    readonly health: DelaylineHealthIndicator;

    constructor(
      orders: DelayedQueue<number>,
      copies: ReliableQueue<number>,
      line: Delayline,
      health: DelaylineHealthIndicator,
    ) {
      this.orders = orders;
      this.copies = copies;
      this.line = line;
      this.health = health;
    }
  }
  InjectQueue(name)(Copier, undefined, 0);
  InjectQueue(name, { connection: "archive" })(Copier, undefined, 1);
  InjectDelayline("archive")(Copier, undefined, 2);
  InjectDelaylineHealth("archive")(Copier, undefined, 3);
  Injectable()(Copier);

  const { app, close, logged } = await start(
    [
      DelaylineModule.forRoot({ redis: redisUrl() }),
      DelaylineModule.forRootAsync("archive", { useFactory: () => ({ redis: archive.url }) }),
      DelaylineModule.registerQueue(
        { name, kind: "delayed" },
        { name, kind: "reliable", connection: "archive" },
      ),
    ],
    [Copier],
  );

  const { orders, copies, line, health } = app.get(Copier);
  expect(orders).toBeInstanceOf(DelayedQueue);
  expect(copies).toBeInstanceOf(ReliableQueue);
  expect(line).not.toBe(app.get(Delayline));
  expect(app.get(getDelaylineToken("archive"))).toBe(line);
  await orders.offer(1, 60_000);
  await copies.offerMany([2, 3].map((payload) => ({ payload, delay: 60_000 })));
  expect(await newRedis(archive.url).zcard(queueKeys(name).timeouts)).toBe(2);
  expect(await newRedis().zcard(queueKeys(name).timeouts)).toBe(1);
  expect(await health.check()).toMatchObject({ delayline: { queues: { [name]: { delayed: 2 } } } });
  expect(await app.get(DelaylineHealthIndicator).check()).toMatchObject({
    delayline: { queues: { [name]: { delayed: 1 } } },
  });
  await archive.shutDown();
  expect(await health.check("archive", { timeout: 300 })).toMatchObject({
    archive: { status: "down" },
  });
  await archive.restart();
  await eventually(async () => (await health.check()).delayline.status === "up");
  await close();
  await expect(copies.offer(4, 0)).rejects.toThrow("closed");
  expect(logged()).toEqual([]);
});

test.each([
  [
    "without a name",
    () => DelaylineModule.forRoot({ redis: redisUrl() }),
    "a connection without a name twice",
  ],
  [
    "of one name",
    () => DelaylineModule.forRoot("a", { redis: redisUrl() }),
    'the connection "a" twice',
  ],
])("two connections %s keep the application from starting", async (_, root, message) => {
  class Other {}
  const other = { module: Other, imports: [{ ...root(), exports: [] }] };
  await expect(async () => await start([root(), other])).rejects.toThrow(message);
  await expect(async () => await start([DelaylineModule.forRoot("", {})])).rejects.toThrow("empty");
});

test("two applications in one process have connections of their own", async () => {
  const root = DelaylineModule.forRoot({ redis: redisUrl() });
  const [one, two] = [await start([root]), await start([root])];
  expect(one.app.get(Delayline)).not.toBe(two.app.get(Delayline));
});

test("a handler that never ends is awaited for `shutdownTimeout`, and errors are logged", async () => {
  const name = uniqueName();
  const { app, close, logged } = await start([
    DelaylineModule.forRoot({ redis: redisUrl(), shutdownTimeout: 50 }),
    DelaylineModule.registerQueue({ name, kind: "blocking" }),
  ]);
  const queue = app.get<BlockingQueue<number>>(getQueueToken(name));
  const handled: number[] = [];
  queue.subscribe((order) => {
    handled.push(order);
    if (order === 1) throw new Error("broken");
    return new Promise(() => {});
  });
  await queue.put(1);
  await queue.put(2);
  await eventually(() => expect(handled).toEqual([1, 2]));
  expect(logged()).toMatchObject([
    [
      "error",
      expect.stringContaining(name),
      expect.stringMatching(/broken[^]*nestjs\.test/),
      "Delayline",
    ],
  ]);

  await close();

  expect(logged().at(-1)?.[1]).toMatch(/1 handler/);
});

test("the body of a loop may use the rest of `shutdownTimeout` to finish", async () => {
  const name = uniqueName();
  const { app, close, logged } = await start([
    DelaylineModule.forRoot({ redis: redisUrl(), shutdownTimeout: 10_000 }),
    DelaylineModule.registerQueue({ name, kind: "blocking" }),
  ]);
  const queue = app.get<BlockingQueue<number>>(getQueueToken(name));
  const finished: number[] = [];
  let closing: Promise<void> | undefined;
  await queue.put(1);
  for await (const order of queue) {
    closing = close();
    // Waits are refused, because the client is closing.
    await expect(queue.take()).rejects.toThrow("closed");
    // If close did not wait for the body, some of these would be refused.
    for (let i = 0; i < 100; i++) await queue.put(2);
    finished.push(order);
  }
  await closing;
  expect(finished).toEqual([1]);
  expect(logged()).toEqual([]);
});

test("health is up with the numbers of the queues, and down while Redis is away", async () => {
  const server = await startOwnServer();
  const { app, logged } = await start([
    DelaylineModule.forRoot({ redis: server.url }),
    DelaylineModule.registerQueue({
      name: "orders",
      kind: "delayed",
      options: { transfer: false },
    }),
  ]);
  const health = app.get(DelaylineHealthIndicator);
  await app.get<DelayedQueue<number>>(getQueueToken("orders")).offer(1, 60_000);
  const numbers = { delayed: 1, overdueFor: 0, ready: 0, dead: 0, quarantined: 0, isPaused: false };

  expect(await health.check()).toEqual({
    delayline: { status: "up", queues: { orders: numbers } },
  });
  expectTypeOf(await health.check("queues")).toEqualTypeOf<Record<"queues", DelaylineHealth>>();

  server.pause();
  expect(await health.check("queues", { timeout: 100 })).toEqual({
    queues: { status: "down", message: "no reply within 100 ms", queues: {} },
  });
  server.resume();
  await server.shutDown();
  const { delayline } = await health.check("delayline", { timeout: 300 });
  expect(delayline).toMatchObject({ status: "down", queues: {} });
  await server.restart();
  await eventually(async () => (await health.check()).delayline.status === "up");
  // A trouble and its end are both logged.
  await eventually(() => logged().length % 2 === 0);
});

test("health of many queues causes no warning", async () => {
  const warned: string[] = [];
  const onWarning = ({ name }: Error) => void warned.push(name);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  const line = newLine({ transfer: false });
  for (let i = 0; i < 20; i++) line.getDelayedQueue(uniqueName());

  const { delayline } = await new DelaylineHealthIndicator(line).check();

  expect(Object.keys(delayline.queues)).toHaveLength(20);
  expect(warned).toEqual([]);
});

test("health works for an application without queues", async () => {
  const { app } = await start([DelaylineModule.forRoot({ redis: redisUrl() })]);
  expect(await app.get(DelaylineHealthIndicator).check("redis")).toEqual({
    redis: { status: "up", queues: {} },
  });
});

test.each([
  [
    "an option of the client",
    () => [DelaylineModule.forRoot({ codec: "yaml" as "json" })],
    "codec",
  ],
  ["shutdownTimeout", () => [DelaylineModule.forRoot({ shutdownTimeout: -1 })], "shutdownTimeout"],
  [
    "the kind of a queue",
    () => [
      DelaylineModule.forRoot(),
      DelaylineModule.registerQueue({ name: "a", kind: "fifo" as "delayed" }),
    ],
    'kind of a queue must be "plain", "delayed", "blocking" or "reliable", got "fifo" for queue "a"',
  ],
  [
    "two handles of one kind",
    () => [
      DelaylineModule.registerQueue({ name: "a", kind: "delayed" }, { name: "a", kind: "delayed" }),
    ],
    'queue "a" is registered twice as "delayed"',
  ],
  [
    "two modules that define a plain queue differently",
    () => [
      DelaylineModule.forRoot({ redis: redisUrl() }),
      DelaylineModule.registerQueue({ name: "a", kind: "plain", options: { maxPayloadBytes: 1 } }),
      DelaylineModule.registerQueue({ name: "a", kind: "plain", options: { maxPayloadBytes: 2 } }),
    ],
    "the one that is open has another maxPayloadBytes; export one definition, and share it",
  ],
  [
    "two modules that define a reliable queue differently",
    () => [
      DelaylineModule.forRoot({ redis: redisUrl() }),
      DelaylineModule.registerQueue({
        name: "a",
        kind: "reliable",
        options: { maxPayloadBytes: 1 },
      }),
      DelaylineModule.registerQueue({
        name: "a",
        kind: "reliable",
        options: { maxPayloadBytes: 2 },
      }),
    ],
    "the one that is open has another maxPayloadBytes; export one definition, and share it",
  ],
])("illegal settings keep the application from starting: %s", async (_, imports, message) => {
  await expect(async () => await start(imports())).rejects.toThrow(message);
});
