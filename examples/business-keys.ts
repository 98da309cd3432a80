/**
 * Messages found by your own keys: an order that is paid in time, one that is not, a page that is indexed again when
 * its author has stopped typing, and a customer who leaves.
 *
 *   npx tsx examples/business-keys.ts
 */
import assert from "node:assert/strict";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";

await using redis = await startRedis();
await using line = new Delayline({ redis: redis.url });
const name = `timeouts-${process.pid}`;
const timeouts = line.getDelayedQueue<string>(name);
const due = line.getBlockingQueue<string>(name);

// Two orders, to be cancelled unless they are paid. One is.
await timeouts.offer("cancel order 41", 300, { key: "order:41" });
await timeouts.offer("cancel order 42", 300, { key: "order:42" });
assert.equal(await timeouts.cancel("order:42"), true);

// The other customer asks for more time.
const later = await timeouts.reschedule("order:41", 500);
assert.equal((await timeouts.get("order:41"))?.deadline, later?.deadline);

// Each keystroke postpones the indexing, for at most a second.
const options = { key: "page:7", onDuplicate: "replace", maxWait: 1_000 } as const;
for (const text of ["H", "He", "Hello"]) await timeouts.offer(`index ${text}`, 100, options);
assert.equal(await due.take(), "index Hello");

assert.equal(await due.take(), "cancel order 41");
// The message has become ready, so it is too late, and the answer says so.
assert.equal(await timeouts.cancel("order:41"), false);

// All reminders of a customer, first only counted.
for (const day of [1, 2, 3]) {
  await timeouts.offer("remind", day * 86_400_000, { key: `customer:9:day-${day}` });
}
const all = { prefix: "customer:9:" };
console.log(await timeouts.cancelWhere(all, { dryRun: true }));
assert.equal((await timeouts.cancelWhere(all)).count, 3);
assert.equal(await timeouts.size(), 0);
