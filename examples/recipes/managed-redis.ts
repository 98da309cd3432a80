/**
 * A Redis that refuses what hosting providers refuse: everything works on it, and the doctor says what it could not see.
 *
 *   npx tsx examples/recipes/managed-redis.ts
 *
 * The page: docs/recipes/managed-redis.md.
 */
import assert from "node:assert/strict";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

/** What Amazon MemoryDB refuses, by its documentation; ElastiCache refuses less. */
const REFUSED = `
  acl|deluser acl|load acl|save acl|setuser bgrewriteaof bgsave
  cluster|addslots cluster|delslots cluster|setslot config debug migrate module psync replicaof save shutdown slaveof sync
`;

await using server = await startRedis();
const admin = new Redis(server.url);
const user = `provider-${process.pid}`;
const refused = REFUSED.trim()
  .split(/\s+/)
  .map((command) => `-${command}`);
await admin.call("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all", ...refused);
const url = new URL(server.url);
url.username = user;
url.password = "secret";

await using line = new Delayline({ redis: url.href });
line.on("error", (error) => assert.fail(error));
const own = new Redis(url.href);
await assert.rejects(own.config("GET", "*"), /NOPERM/);
own.disconnect();

// Plain, reliable with a retry, and exclusive in partitions: delivered, cancelled, and the waits end when they should.
const plain = `managed-plain-${process.pid}`;
await line.getDelayedQueue<number>(plain).offer(1, 100);
assert.equal(await line.getBlockingQueue<number>(plain).take(), 1);
assert.equal(await line.getBlockingQueue<number>(plain).poll(100), undefined);

const reliable = line.getReliableQueue<number>(`managed-${process.pid}`, { retry: [100] });
const attempts = new Set<number>();
const isRetried = new Promise<void>((resolve) => {
  reliable.subscribe(
    (_, { attempt }) => {
      attempts.add(attempt);
      if (attempt === 1) throw new Error("once more");
      resolve();
    },
    { onError: () => {} },
  );
});
await reliable.offer(2, 100);
await isRetried;
await reliable.offer(3, 60_000, { key: "order:3" });
assert.equal(await reliable.cancel("order:3"), true);

const exclusive = line.getReliableQueue<number>(`managed-exclusive-${process.pid}`, {
  partitions: 2,
  exclusive: true,
});
const isHandled = new Promise<void>((resolve) => void exclusive.subscribe(() => resolve()));
await exclusive.offer(4, 100, { partitionKey: "customer:7" });
await isHandled;
console.log("plain, reliable and exclusive queues work without what the provider refuses");
await line.close();
await admin.call("ACL", "DELUSER", user);
admin.disconnect();
