import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Delayline } from "../../../src/index.ts";
import { startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

// Processes that have a queue open as an ordinary one go on offering, cancelling and taking while others give it
// partitions and change their number. Nothing is lost, nothing is delivered twice, and what was cancelled stays so.

const ROUNDS = Number(process.env["FOLLOWS_ROUNDS"] ?? 2);

/** What happened to each message. */
class Ledger {
  readonly offered = new Set<string>();
  readonly cancelled = new Set<string>();
  readonly delivered = new Map<string, number>();

  deliver(payload: string): void {
    this.delivered.set(payload, (this.delivered.get(payload) ?? 0) + 1);
  }

  get missing(): string[] {
    return [...this.offered].filter((one) => !this.cancelled.has(one) && !this.delivered.has(one));
  }

  get wrong(): string[] {
    return [...this.delivered].flatMap(([one, count]) =>
      count > 1 || this.cancelled.has(one) ? [`${one}: ${count} times`] : [],
    );
  }
}

const OPENERS = {
  plain: (line: Delayline, name: string) => line.getDelayedQueue<string>(name),
  reliable: (line: Delayline, name: string) => line.getReliableQueue<string>(name),
};

const TAKERS = {
  plain: (line: Delayline, name: string, taken: (payload: string) => void) => {
    line.getBlockingQueue<string>(name).subscribe(taken, { concurrency: 3 });
  },
  reliable: (line: Delayline, name: string, taken: (payload: string) => void) => {
    const handler = async (payload: string) => {
      await sleep(Math.random() * 20);
      taken(payload);
    };
    line.getReliableQueue<string>(name).subscribe(handler, { concurrency: 3 });
  },
};

for (const kind of ["plain", "reliable"] as const) {
  test(`traffic of processes that follow, on a ${kind} queue`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const name = uniqueName();
      const ledger = new Ledger();
      const lines = Array.from({ length: 3 }, () => newLine());
      const takers = Array.from({ length: 2 }, () => newLine());
      for (const line of takers) TAKERS[kind](line, name, (payload) => ledger.deliver(payload));
      const over = new AbortController();
      const traffic = lines.map(async (line, i) => {
        const queue = OPENERS[kind](line, name);
        for (let n = 0; !over.signal.aborted; n++) {
          const payload = `${i}-${n}`;
          const delay = Math.random() * 600;
          await queue.offer(payload, delay, n % 2 === 0 ? { key: payload } : {});
          ledger.offered.add(payload);
          if (n % 6 === 0 && (await queue.cancel(payload))) ledger.cancelled.add(payload);
          if (n % 10 === 0) await sleep(1);
        }
      });
      await sleep(400 * Math.random());
      const changer = newLine();
      for (const count of [3, 5, 2]) {
        await changer.setPartitions(name, count);
        await sleep(300 * Math.random());
      }
      over.abort();
      await Promise.all(traffic);
      await eventually(() => ledger.missing.length === 0).catch(() => {});
      const all = OPENERS[kind](changer, name);
      // Nothing is left that could be delivered a second time.
      await eventually(async () => {
        const { delayed, ready, inFlight, retries } = await all.stats();
        expect(delayed + ready + inFlight + retries).toBe(0);
      });
      expect({ missing: ledger.missing, wrong: ledger.wrong }).toEqual({ missing: [], wrong: [] });
      expect(ledger.cancelled.size).toBeGreaterThan(0);
      expect(ledger.offered.size).toBeGreaterThan(300);
      expect((await all.stats()).perPartition).toHaveLength(2);
      expect(await newRedis().exists(`redisson_delay_queue_timeout:{${name}}`, name)).toBe(0);
      await Promise.all([...lines, ...takers, changer].map((line) => line.close()));
    }
  });
}

const SITES = {
  "a Cluster": async () => {
    const { cluster } = await startCluster({ masters: 3 });
    return cluster;
  },
  "two servers": async () => [redisUrl(), (await startOwnServer()).url],
};

for (const [site, start] of Object.entries(SITES)) {
  test(`waits of a process that follows go on, on ${site}`, async () => {
    const redis = await start();
    const [plain, reliable] = [uniqueName(), uniqueName()];
    const line = newLine({ redis });
    const [queue, ready] = [
      line.getDelayedQueue<string>(plain),
      line.getBlockingQueue<string>(plain),
    ];
    const taken: string[] = [];
    line.getReliableQueue<string>(reliable).subscribe((payload) => void taken.push(payload));
    const takes = [ready.take(), ready.poll(60_000)];
    await queue.offer("first", 0);
    const other = newLine({ redis });
    for (const name of [plain, reliable]) await other.setPartitions(name, 4);
    await eventually(async () => (await queue.stats()).perPartition.length === 4);

    const partitioned = other.getDelayedQueue<string>(plain, { partitions: 4 });
    await partitioned.offer("second", 0);
    expect(new Set(await Promise.all(takes))).toEqual(new Set(["first", "second"]));
    const acknowledged = other.getReliableQueue<string>(reliable, { partitions: 4 });
    for (let i = 0; i < 12; i++) await acknowledged.offer(`message ${i}`, 0);
    await eventually(() => taken.length === 12);
    expect(new Set(taken).size).toBe(12);
  });
}
