/** An order that becomes due after a second. Run it: npx tsx examples/quick-start.ts */
import assert from "node:assert/strict";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";

await using redis = await startRedis(); // the Redis at REDIS_URL, or one for this run
await using line = new Delayline({ redis: redis.url });
const name = `orders-${process.pid}`;

const offeredAt = performance.now();
await line.getDelayedQueue(name).offer({ id: 42 }, 1_000);
const order = await line.getBlockingQueue(name).take();

const waited = performance.now() - offeredAt;
console.log(`took order ${JSON.stringify(order)} after ${waited.toFixed()} ms`);
assert.deepEqual(order, { id: 42 });
assert.ok(waited >= 1_000, "never early");
