/**
 * A partitioned queue is used like any other. Messages of one customer are in one partition, and the number of
 * partitions changes while orders are cancelled and taken.
 *
 *   npx tsx examples/partitions.ts
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";

interface Order {
  readonly number: number;
  readonly customer: string;
}

const ORDERS = 2000;

await using redis = await startRedis();
await using line = new Delayline({ redis: redis.url });
const queue = `orders-${process.pid}`;
// Only the first process's number counts. From then on Redis holds the number of partitions.
const orders = line.getDelayedQueue<Order>(queue, { partitions: 2 });
const ready = line.getBlockingQueue<Order>(queue, { partitions: 2 });

async function show(title: string): Promise<void> {
  console.log(title);
  for (const { partition, name, delayed, ready: due } of await line.partitions(queue)) {
    console.log(`  ${partition}: ${name}, ${delayed} delayed, ${due} ready`);
  }
}

const taken = new Set<number>();
ready.subscribe(({ number }) => void taken.add(number), { concurrency: 10 });

// The partition key puts all orders of a customer into one partition.
const partitionKeyOf = (number: number) => `customer:${number % 50}`;
await orders.offerMany(
  Array.from({ length: ORDERS }, (_, number) => ({
    payload: { number, customer: partitionKeyOf(number) },
    delay: 4000 + number / 4,
    key: `order:${number}`,
    partitionKey: partitionKeyOf(number),
  })),
);
await show("two partitions");

// Any process may change the number. Others go on meanwhile, and every answer stays exact.
const changing = line.setPartitions(queue, 8, {
  onProgress: ({ moved }) => process.stdout.write(`\r  ${moved} migrated`),
});
let cancelled = 0;
for (let number = 0; number < 500; number++) {
  // With the partition key the call asks one partition, without it perhaps all.
  const partitionKey = partitionKeyOf(number);
  if (await orders.cancel(`order:${number}`, { partitionKey })) cancelled++;
}
await changing;
console.log();
await show(`eight partitions; ${cancelled} orders were paid meanwhile`);

await line.setPartitions(queue, 3);
await show("three partitions");

while (taken.size < ORDERS - cancelled) await sleep(20);
console.log(`${taken.size} orders were due, each once`);
assert.equal(cancelled, 500);
assert.equal(taken.size, 1500);
assert.equal(Math.min(...taken), 500);
assert.equal(await orders.size(), 0);
