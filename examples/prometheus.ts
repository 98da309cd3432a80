/**
 * Metrics of queues for Prometheus: the values that it would scrape, before and after a worker starts. Alert rules and
 * a Grafana dashboard for them are in examples/monitoring.
 *
 *   npx tsx examples/prometheus.ts
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { collectMetrics } from "delayline/prometheus";
import { startRedis } from "delayline/testing";
import { Registry } from "prom-client";

await using redis = await startRedis();
await using line = new Delayline({ redis: redis.url });
const queue = `reminders-${process.pid}`;

// `register` of prom-client works as well. `queues: "all"` finds all queues.
const registry = new Registry();
await using _ = collectMetrics(line, { registry, queues: [queue] });
const server = createServer((_request, response) => {
  response.setHeader("content-type", registry.contentType);
  // A Redis that is down does not make it reject: the scrape then lacks the numbers of the queues.
  void registry.metrics().then((text) => response.end(text));
});
await once(server.listen(0, "127.0.0.1"), "listening");
const { port } = server.address() as AddressInfo;

/** Prints the queue's values that are not 0, and returns the one called `name`. */
async function scrape(name: string, title: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const lines = (await response.text()).split("\n").filter((text) => text.includes(`{queue="`));
  console.log(`\n${title}`);
  for (const text of lines) if (!text.endsWith(" 0")) console.log(`  ${text}`);
  const found = lines.find((text) => text.startsWith(`delayline_${name}{`));
  return Number(found?.split(" ").at(-1));
}

// Nobody moves these: this client has `transfer: false`, and there is no worker.
const reminders = line.getReliableQueue<string>(queue, { transfer: false });
await reminders.offerMany([
  { payload: "first", delay: 10 },
  { payload: "second", delay: 20 },
  { payload: "third", delay: 3_600_000 },
]);
await sleep(50);
assert.equal(await scrape("overdue", "two are overdue, and nobody listens"), 2);

{
  await using worker = new Delayline({ redis: redis.url });
  worker
    .getReliableQueue<string>(queue)
    .subscribe((text) => console.log(`reminded of the ${text}`));
  while ((await reminders.stats()).overdue > 0 || !(await isIdle())) await sleep(10);
  assert.equal(await scrape("overdue", "a worker has started"), 0);
}
assert.equal(await scrape("delayed", "the third is delayed"), 1);
await reminders.clear();
server.close();

async function isIdle(): Promise<boolean> {
  const { ready, inFlight } = await reminders.stats();
  return ready + inFlight === 0;
}
