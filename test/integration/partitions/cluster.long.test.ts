import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "ioredis";
import { expect, test } from "vitest";
import { BusyWait } from "../../../src/time/busy-wait.ts";
import { openServers } from "../../../src/client/open-servers.ts";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { masterOf, startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
import { newPart } from "../../helpers/part.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

test("the masters of a Cluster get equally many commands", async () => {
  const cluster = await startCluster({ masters: 4 });
  const { cluster: redis, nodes } = cluster;
  const name = uniqueName("partitions");
  const line = newLine({ redis });
  const queue = line.getDelayedQueue<number>(name, { partitions: 16 });
  let count = 0;
  line.getBlockingQueue<number>(name).subscribe(() => void count++);
  await queue.offer(-1, 0);
  await eventually(() => count === 1);

  const partitions = await line.partitions(name);
  for (const { partition, node } of partitions) {
    const { port } = await masterOf(cluster, partitionName(name, partition));
    expect(node).toBe(`127.0.0.1:${port}`);
  }
  const clients = nodes.map(({ url }) => newRedis(url));
  for (const client of clients) await client.config("RESETSTAT");
  const offers: Promise<unknown>[] = [];
  for (let i = 0; i < 4000; i++) {
    offers.push(queue.offer(i, 20, i % 2 === 0 ? { key: `key-${i}` } : {}));
    if (i % 4 === 0) await nextTurn();
  }
  await Promise.all(offers);
  await eventually(() => count === 4001);
  const calls = await Promise.all(
    clients.map(async (client) => {
      const stats = await client.info("commandstats");
      return [...stats.matchAll(/^cmdstat_([^:]*):calls=(\d+)/gm)]
        .map(([, , n]) => Number(n))
        .reduce((sum, n) => sum + n, 0);
    }),
  );
  const mean = calls.reduce((sum, n) => sum + n, 0) / calls.length;
  for (const n of calls) expect(Math.abs(n / mean - 1)).toBeLessThan(0.1);
}, 120_000);

const P = 8;

/**
 * How many messages are handled while each message of a quiet partition waits beside partition 0, which is never empty.
 * Each process handles one message at a time.
 */
async function waitsBeside(redis: string | Cluster, processes: number): Promise<number[]> {
  const name = uniqueName("partitions");
  const client = typeof redis === "string" ? newRedis(redis) : redis;
  const push = (partition: number, payloads: readonly number[]) =>
    client.rpush(partitionName(name, partition), ...payloads);
  await push(
    0,
    Array.from({ length: 2000 }, () => -1),
  );
  let handled = 0;
  const handledBefore = new Map<number, number>();
  const waits: number[] = [];
  const lines = Array.from({ length: processes }, () => newLine({ redis }));
  for (const line of lines) {
    const ready = line.getBlockingQueue<number>(name, { partitions: P, codec: "json" });
    ready.subscribe(async (n) => {
      handled++;
      if (n >= 0) waits.push(handled - (handledBefore.get(n) as number));
      await sleep(HANDLING);
    });
  }
  await eventually(() => handled > 5 * processes);
  for (let n = 0; n < 28; n++) {
    handledBefore.set(n, handled);
    await push(1 + (n % (P - 1)), [n]);
    await sleep(3 * HANDLING);
  }
  await eventually(() => waits.length === 28);
  await Promise.all(lines.map((line) => line.close()));
  return waits;
}

/** Milliseconds that a handler takes: longer than a process goes on waiting while nobody takes. */
const HANDLING = 8;

test("beside a partition that is never empty, the others wait no longer than if all were full", async () => {
  const { cluster } = await startCluster();
  for (const redis of [redisUrl(), cluster]) {
    for (const processes of [1, 3]) {
      const waits = await waitsBeside(redis, processes);
      // If all partitions had messages, each would have its turn once in a round; a round may already have begun.
      expect(Math.max(...waits)).toBeLessThanOrEqual(2 * P * processes);
    }
  }
}, 120_000);

test("a Cluster and a server may be in one list", async () => {
  const { cluster, nodes } = await startCluster();
  const name = uniqueName("partitions");
  const line = newLine({ redis: [cluster, redisUrl()] });
  const queue = line.getDelayedQueue<number>(name, { partitions: 6 });
  const taken: number[] = [];
  line.getBlockingQueue<number>(name).subscribe((n) => void taken.push(n), { concurrency: 4 });
  const numbers = Array.from({ length: 300 }, (_, i) => i);
  await queue.offerMany(numbers.map((i) => ({ payload: i, delay: 20, key: `key-${i}` })));
  await eventually(() => taken.length === 300);
  expect(taken.toSorted((a, b) => a - b)).toEqual(numbers);
  const ports = (await line.partitions(name)).map(({ node }) => Number(node?.split(":")[1]));
  const ofCluster = nodes.map(({ port }) => port);
  expect(ports.map((port) => ofCluster.includes(port))).toEqual([
    true,
    false,
    true,
    false,
    true,
    false,
  ]);

  // The notice of a change arrives, whichever node it is published on.
  const other = newLine({ redis: [cluster, redisUrl()] });
  await other.setPartitions(name, 2);
  await eventually(async () => (await line.partitions(name)).length === 2);
  await queue.offer(300, 0);
  await eventually(() => taken.length === 301);
});

test("each queue on a Cluster uses the clock of its own node", async () => {
  const { cluster, nodes } = await startCluster();
  const clients = nodes.map(({ url }) => newRedis(url));
  const name = uniqueName();
  const owner = nodes.indexOf(await masterOf({ cluster, nodes }, name));
  for (const client of clients) await client.config("RESETSTAT");
  await newLine({ redis: cluster, transfer: false }).getDelayedQueue<number>(name).offer(1, 60_000);
  const asked = await Promise.all(
    clients.map(async (client) => (await client.info("commandstats")).includes("cmdstat_time:")),
  );
  expect(asked.map((isAsked, i) => isAsked && i !== owner)).toEqual([false, false, false]);

  const limits = { callTimeout: 1000, unreachableTimeout: 1000, heartbeat: 2000 };
  const settings = { ...limits, busyWait: new BusyWait(10) };
  const listener = { report: () => {}, onRecovered: () => {} };
  for (const [redis, haveOwn] of [
    [cluster, true],
    [redisUrl(), false],
  ] as const) {
    const [shared] = openServers({ redis }, settings, listener);
    const [one, another] = ["one", "another"].map((queue) => newPart(queue, shared));
    expect(one?.queue.clock !== another?.queue.clock).toBe(haveOwn);
    shared.connections.close();
  }
});
