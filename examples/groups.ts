/**
 * Each group gets every message: one welcomes new users by mail, the other adds them to a search index. A message that
 * fails in one group is retried there, and the other group is not affected.
 *
 *   npx tsx examples/groups.ts
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";

interface User {
  readonly name: string;
}

await using redis = await startRedis();
await using line = new Delayline({ redis: redis.url });
const queue = `new-users-${process.pid}`;
// A new group begins with the oldest message that is still there.
const mail = line.getReliableQueue<User>(queue, { group: "mail", start: "0" });
const search = line.getReliableQueue<User>(queue, { group: "search", start: "0" });

// Offers through any handle reach all groups. A handle's first offer creates its group.
await mail.offer({ name: "Ada" }, 0, { key: "user:ada" });
await search.offer({ name: "Bo" }, 0, { key: "user:bo" });
await mail.offer({ name: "Cy" }, 300, { key: "user:cy" });

// One group has a handler. Its message is acknowledged when the handler returns.
const welcomed: string[] = [];
mail.subscribe(
  async ({ name }, { attempt }) => {
    console.log(`mail, attempt ${attempt}: welcome, ${name}`);
    welcomed.push(`${name} ${attempt}`);
  },
  { concurrency: 10 },
);

// The other takes and acknowledges by hand. At first it cannot index Bo.
const indexed: string[] = [];
while (indexed.length < 3) {
  const delivery = await search.take({ signal: AbortSignal.timeout(15_000) });
  const { payload, key, attempt } = delivery;
  if (key === "user:bo" && attempt < 3) {
    console.log(`search, attempt ${attempt}: not now, ${payload.name}`);
    await delivery.nack({ delay: 200, reason: "the index is locked" });
  } else {
    console.log(`search, attempt ${attempt}: found ${payload.name}`);
    indexed.push(`${payload.name} ${attempt}`);
    await delivery.ack();
  }
}

while (welcomed.length < 3) await sleep(20);
assert.deepEqual(welcomed.toSorted(), ["Ada 1", "Bo 1", "Cy 1"]);
assert.deepEqual(indexed.toSorted(), ["Ada 1", "Bo 3", "Cy 1"]);
