/**
 * A partner allows so many calls a second for each customer, two at a time, and answers 429 if there are more. A customer
 * with a flood keeps nobody waiting, and what is urgent comes first.
 *
 *   npx tsx examples/recipes/partner-limits.ts
 *
 * The page: docs/recipes/partner-limits.md.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";

interface Payment {
  readonly customer: string;
  readonly amount: number;
}

await using server = await startRedis();
await using line = new Delayline({ redis: server.url });

const payments = line.getReliableQueue<Payment>(`payments-${process.pid}`);

// Stored in Redis: every process obeys, and those that start later do, too.
await payments.flow.set({
  lane: { rate: { limit: 50, per: 1000, burst: 5 }, concurrency: 2 }, // each customer, as the partner's contract says
  lanes: { acme: { rate: { limit: 100, per: 1000, burst: 5 }, concurrency: 4 } }, // who pays for more
});

async function pay(payment: Payment, priority = 0): Promise<void> {
  await payments.offer(payment, 0, { lane: payment.customer, priority });
}

payments.subscribe(
  async (payment, delivery) => {
    const response = await fetch(`${partner}/${payment.customer}`, {
      method: "POST",
      headers: { "idempotency-key": delivery.id }, // the same on every attempt
      body: String(payment.amount),
    });
    if (response.status === 429) {
      // All of this customer's payments wait, not only this one.
      const seconds = Number(response.headers.get("retry-after") ?? 1);
      await delivery.nack({ delay: 1000 * seconds, holdLane: true });
    } else if (!response.ok) throw new Error(`the partner answered ${response.status}`);
  },
  { concurrency: 20 }, // handlers of this process, for all customers
);

// The partner: counts calls, and once turns globex away for a second, although globex keeps to its contract.
const calls: { customer: string; at: number; amount: number }[] = [];
const open = new Map<string, number>();
let [mostOpen, turnedAwayAt] = [0, 0];
const partnerServer = createServer((request, response) => {
  void (async () => {
    const customer = request.url?.slice(1) ?? "";
    const amount = Number((await request.toArray()).join(""));
    const count = (open.get(customer) ?? 0) + 1;
    open.set(customer, count);
    if (customer === "globex") mostOpen = Math.max(mostOpen, count);
    await sleep(30);
    open.set(customer, (open.get(customer) ?? 1) - 1);
    if (customer === "globex" && turnedAwayAt === 0 && calls.length > 60) {
      turnedAwayAt = Date.now();
      response.writeHead(429, { "retry-after": "1" }).end();
      return;
    }
    calls.push({ customer, at: Date.now(), amount });
    response.end();
  })();
}).listen(0, "127.0.0.1");
await once(partnerServer, "listening");
const partner = `http://127.0.0.1:${(partnerServer.address() as AddressInfo).port}`;

// A flood of globex, then one of globex that is urgent, and those of others.
const startedAt = Date.now();
await payments.offerMany(
  Array.from({ length: 100 }, (_, i) => ({
    payload: { customer: "globex", amount: i },
    delay: 0,
    lane: "globex",
  })),
);
await pay({ customer: "globex", amount: 1_000_000 }, 10);
for (let i = 0; i < 3; i++) await pay({ customer: "initech", amount: i });
await Promise.all(Array.from({ length: 60 }, (_, i) => pay({ customer: "acme", amount: i })));

const ofCustomer = (customer: string) => calls.filter((call) => call.customer === customer);
while (ofCustomer("initech").length < 3) await sleep(5);
const before = ofCustomer("globex").length;
console.log(`initech was served after ${before} of globex's 101 payments`);
assert.ok(before < 50);
const { waiting, lanes } = await payments.flow.state();
console.log(`${waiting} payments wait, most of them those of ${lanes[0]?.lane}`);
assert.equal(lanes[0]?.lane, "globex");

while (ofCustomer("globex").length < 101) await sleep(5);
const globex = ofCustomer("globex");
const took = Date.now() - startedAt;
console.log(`globex: ${globex.length} payments in ${took} ms, ${mostOpen} at a time at most`);
assert.equal(ofCustomer("acme").length, 60);
assert.equal(new Set(globex.map(({ amount }) => amount)).size, 101);
// What the flow promises, for ready messages: burst + time * rate; and a second in which the lane rested.
assert.ok(took >= ((101 - 5) * 1000) / 50);
assert.ok(mostOpen <= 2);

// The urgent one did not wait for the hundred before it.
const place = globex.findIndex(({ amount }) => amount === 1_000_000);
console.log(`the urgent payment was number ${place + 1} of globex's`);
assert.ok(place < 50);

// After the 429 nothing of globex came for a second, but what was in hand.
const early = globex.filter(({ at }) => at > turnedAwayAt && at < turnedAwayAt + 900);
console.log(`after the 429 ${early.length} calls came within 900 ms`);
assert.ok(turnedAwayAt > 0 && early.length <= 2);
await line.close();
partnerServer.close();
