/**
 * A Nest application with a reliable queue: one service offers reminders, another one sends them, and the application
 * shuts down properly.
 *
 * Node.js runs TypeScript directly, but not decorator syntax, so decorators are called as functions here. With a
 * compiler, write `@Injectable()` above the class and `@InjectQueue("reminders")` before the parameter.
 *
 *   npx tsx examples/nestjs.ts
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { Delivery, ReliableQueue } from "delayline";
import { DelaylineHealthIndicator, DelaylineModule, InjectQueue } from "delayline/nestjs";
import { startRedis } from "delayline/testing";

interface Reminder {
  readonly order: number;
}

const QUEUE = `reminders-${process.pid}`;

/** Offers reminders. */
class OrderService {
  readonly #reminders: ReliableQueue<Reminder>;

  constructor(reminders: ReliableQueue<Reminder>) {
    this.#reminders = reminders;
  }

  async place(order: number): Promise<void> {
    await this.#reminders.offer({ order }, 500, { key: `order:${order}` });
  }

  /** Returns whether there was a reminder to cancel. */
  async pay(order: number): Promise<boolean> {
    return await this.#reminders.cancel(`order:${order}`);
  }
}
Injectable()(OrderService);
InjectQueue(QUEUE)(OrderService, undefined, 0);

/** Sends reminders, from the application's start to its end. */
class ReminderWorker {
  readonly sent: number[] = [];
  readonly #reminders: ReliableQueue<Reminder>;

  constructor(reminders: ReliableQueue<Reminder>) {
    this.#reminders = reminders;
  }

  onApplicationBootstrap(): void {
    this.#reminders.subscribe((reminder, delivery) => this.#send(reminder, delivery), {
      concurrency: 10,
    });
  }

  #send({ order }: Reminder, { attempt }: Delivery<Reminder>): void {
    console.log(`order ${order} is not paid yet (attempt ${attempt})`);
    this.sent.push(order);
  }
}
Injectable()(ReminderWorker);
InjectQueue(QUEUE)(ReminderWorker, undefined, 0);

await using redis = await startRedis();

class AppModule {}
Module({
  imports: [
    DelaylineModule.forRoot({ redis: redis.url, shutdownTimeout: 20_000 }),
    DelaylineModule.registerQueue({ name: QUEUE, kind: "reliable" }),
  ],
  providers: [OrderService, ReminderWorker],
})(AppModule);

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["warn", "error"] });
// On SIGTERM, handlers finish and the client is closed.
app.enableShutdownHooks();

const [orders, worker] = [app.get(OrderService), app.get(ReminderWorker)];
for (const order of [1, 2, 3]) await orders.place(order);
assert.equal(await orders.pay(2), true);
const { delayline } = await app.get(DelaylineHealthIndicator).check();
console.log(`health: ${delayline.status}, ${delayline.queues[QUEUE]?.delayed} reminders`);
assert.equal(delayline.status, "up");

while (worker.sent.length < 2) await sleep(20);
await app.close();
assert.deepEqual(worker.sent, [1, 3]);
console.log("orders 1 and 3 were reminded, once each; the application is closed");
