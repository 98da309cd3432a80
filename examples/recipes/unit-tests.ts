/**
 * Three ways to test code with queues, for `node:test`: the handler alone, a fake in place of a queue, and the whole with
 * a clock that the test turns.
 *
 *   npx tsx examples/recipes/unit-tests.ts
 *
 * The page: docs/recipes/unit-tests.md.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Delayline, type Delivery, type MessageId, type ReliableQueue } from "delayline";
import { startRedis, testClock } from "delayline/testing";

interface Invoice {
  readonly number: number;
}

const DAY = 86_400_000;

// The application. It asks for the two methods that it uses, and for the part of a delivery that it reads.
interface Reminders extends Pick<ReliableQueue<Invoice>, "offer"> {
  // One of the two ways to call `cancel`: a fake need not have the other.
  cancel(key: string): Promise<boolean>;
}

class Billing {
  readonly sent: string[] = [];
  readonly #reminders: Reminders;

  constructor(reminders: Reminders) {
    this.#reminders = reminders;
  }

  async send({ number }: Invoice): Promise<void> {
    await this.#reminders.offer({ number }, 30 * DAY, { key: `invoice:${number}` });
  }

  async pay(number: number): Promise<void> {
    await this.#reminders.cancel(`invoice:${number}`);
  }

  async remind({ number }: Invoice, { attempt }: Pick<Delivery, "attempt">): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 1_000)); // the mail server is slow
    this.sent.push(`invoice ${number}, attempt ${attempt}`);
  }
}

/** A queue that only remembers. */
class FakeReminders implements Reminders {
  readonly delays = new Map<string, number>();

  async offer(_: Invoice, delay: number, { key = "" } = {}) {
    this.delays.set(key, delay);
    const deadline = Date.now() + delay;
    return {
      id: `${deadline}-${"0".repeat(32)}` as MessageId,
      deadline,
      outcome: "added" as const,
    };
  }

  async cancel(key: string): Promise<boolean> {
    return this.delays.delete(key);
  }
}

void test("1. a handler is a function", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const billing = new Billing(new FakeReminders());
  const isSent = billing.remind({ number: 7 }, { attempt: 2 });
  t.mock.timers.tick(1_000);
  await isSent;
  assert.deepEqual(billing.sent, ["invoice 7, attempt 2"]);
});

void test("2. a fake shows what is offered and cancelled", async () => {
  const fake = new FakeReminders();
  const billing = new Billing(fake);
  await billing.send({ number: 7 });
  await billing.send({ number: 8 });
  await billing.pay(7);
  assert.deepEqual([...fake.delays], [["invoice:8", 30 * DAY]]);
});

const redis = await startRedis();
after(() => redis.stop());

void test("3. thirty days in milliseconds, on a real Redis", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  // The clock first, the clients after it. Fake timers follow it: the handler's second passes, too.
  await using clock = await testClock({ now: "2026-03-28T08:00:00Z", timers: t.mock.timers });
  await using line = new Delayline({ redis: redis.url });
  const reminders = line.getReliableQueue<Invoice>(`reminders-${process.pid}`);
  const billing = new Billing(reminders);
  reminders.subscribe((invoice, delivery) => billing.remind(invoice, delivery));

  await billing.send({ number: 7 });
  await billing.send({ number: 8 });
  await clock.advance("10 days");
  await billing.pay(7);
  await clock.advance("20 days");
  assert.deepEqual(billing.sent, []); // the mail server is slow
  await clock.advance("1 s");
  assert.deepEqual(billing.sent, ["invoice 8, attempt 1"]);
  assert.equal(new Date().toISOString(), "2026-04-27T08:00:01.000Z");
});
