/**
 * Several tenants on one Redis: a queue for each, which its own Redis user alone may use, served in turn by one process.
 *
 *   npx tsx examples/recipes/tenants.ts
 *
 * The page: docs/recipes/tenants.md.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline, type ReliableQueue, RedisError } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";

interface Export {
  readonly file: string;
}

await using server = await startRedis();
await using line = new Delayline({ redis: server.url });

const run = process.pid;
const TENANTS = ["acme", "globex", "initech"];

function queueOf(client: Delayline, tenant: string): ReliableQueue<Export> {
  return client.getReliableQueue<Export>(`exports-${run}:${tenant}`);
}

// Each tenant has two handlers at most: 1,000 exports of acme do not keep globex waiting.
const log: string[] = [];
for (const tenant of TENANTS) {
  queueOf(line, tenant).subscribe(
    async ({ file }) => {
      await sleep(10);
      log.push(`${tenant} ${file}`);
    },
    { concurrency: 2 },
  );
}

const acme = Array.from({ length: 200 }, (_, i) => ({ payload: { file: `${i}.csv` }, delay: 0 }));
await queueOf(line, "acme").offerMany(acme);
await queueOf(line, "globex").offer({ file: "a.csv" }, 0);
while (!log.includes("globex a.csv")) await sleep(5);
const before = log.filter((entry) => entry.startsWith("acme")).length;
console.log(`globex was served after ${before} of acme's 200 exports`);
assert.ok(before < 100);

// A tenant that has to stop, or leaves.
const initech = queueOf(line, "initech");
await initech.offer({ file: "b.csv" }, 60_000);
await initech.pause();
assert.equal(await initech.clear(), 1);
await initech.resume();

// Code that runs for one tenant gets a Redis user that can reach nothing else.
const admin = new Redis(server.url);
await admin.call(
  "ACL",
  "SETUSER",
  `globex-${run}`,
  "reset",
  "on",
  ">secret",
  ...rulesFor("globex"),
);
const url = new URL(server.url);
url.username = `globex-${run}`;
url.password = "secret";
const own = new Delayline({ redis: url.href, transfer: false });
const { id } = await queueOf(own, "globex").offer({ file: "c.csv" }, 60_000);
assert.equal(await queueOf(own, "globex").cancel(id), true);
await assert.rejects(queueOf(own, "acme").offer({ file: "stolen.csv" }, 0), (error) => {
  assert.ok(error instanceof RedisError);
  console.log(error.message.slice(0, 90));
  return error.effect === "none";
});
await own.close();
await admin.call("ACL", "DELUSER", `globex-${run}`);
admin.disconnect();

/** The keys and channels of one queue; the commands are those of the access rules, here all but the dangerous ones. */
function rulesFor(tenant: string): string[] {
  const name = `exports-${run}:${tenant}`;
  const commands = `+@all -@admin -@dangerous +info +client|id +client|unblock +client|setname`;
  const keys = `~${name} ~redisson_delay_queue*:{${name}} ~delayline_*:{${name}} ~delayline_*:{${name}/*}`;
  return `${commands} ${keys} &redisson_delay_queue_channel:{${name}}`.split(" ");
}
