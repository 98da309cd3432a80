import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { OfferResult } from "../../../src/index.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { expectEachOnce } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { Crew } from "./crew.ts";
import { completedCount, readNotes } from "./handled.ts";

/* Of all offers with `once` under one key, one is added, whatever happens to consumers and connections. */

const KEYS = 250;
const OFFERS = 8;
const KILL_EVERY = 400;

test.each([
  { what: "an ordinary queue", options: {} as { partitions?: number }, counts: [] },
  { what: "partitions whose number changes", options: { partitions: 2 }, counts: [5, 3] },
])(
  `$what: ${OFFERS} offers for each of ${KEYS} keys, while handlers fail and consumers are killed`,
  async ({ options, counts }) => {
    const name = uniqueName("once-storm");
    const redis = newRedis();
    const { partitions } = options;
    const env = {
      REDIS: redisUrl(),
      LEDGER: redisUrl(),
      QUEUE: name,
      WORK: "stumble",
      ...(partitions !== undefined && { PARTITIONS: String(partitions) }),
    };
    const lines = upTo(3).map(() =>
      newLine({ codec: "json", transfer: false, callTimeout: 60_000 }),
    );
    const queues = lines.map((line) => line.getReliableQueue<number>(name, options));
    await queues[0]?.stats();
    const crew = await Crew.start(3, env, 2);

    // Each offer has a number of its own: those of key k are k, k + 250, k + 500 and so on.
    const outcomes: OfferResult["outcome"][] = [];
    const results = new Map<number, Set<string>>();
    const offer = async (number: number) => {
      const k = number % KEYS;
      const queue = queues[Math.floor(Math.random() * queues.length)]!;
      await sleep(Math.random() * 8_000);
      const delay = Math.random() < 0.5 ? 0 : Math.random() * 1_000;
      const once = { key: `key:${k}`, once: { for: 3_600_000 } };
      const { outcome, id } = await queue.offer(number, delay, once);
      outcomes.push(outcome);
      results.set(k, (results.get(k) ?? new Set()).add(id));
    };
    const offering = Promise.all(upTo(KEYS * OFFERS).map(offer));
    let isOver = false;
    void offering.finally(() => (isOver = true));
    const changing = (async () => {
      for (const [i, count] of counts.entries()) {
        const told = ((i + 1) * KEYS * OFFERS) / 6;
        await eventually(() => outcomes.length > told, { within: 60_000 });
        await lines[0]?.setPartitions(name, count);
      }
    })();
    const isDone = async () => isOver && (await completedCount(redis, name)) >= KEYS;
    while (!(await isDone())) {
      const next = sleep(KILL_EVERY);
      if (crew.kills < 15) await crew.replaceOne();
      await next;
    }
    await Promise.all([offering, changing]);
    await eventually(
      async () => {
        const { delayed, ready, inFlight, retries } = await queues[0]!.stats();
        expect({ delayed, ready, inFlight, retries }).toEqual({
          delayed: 0,
          ready: 0,
          inFlight: 0,
          retries: 0,
        });
      },
      { within: 60_000 },
    );

    expect(outcomes.filter((outcome) => outcome === "added")).toHaveLength(KEYS);
    expect(outcomes.filter((outcome) => outcome === "existing")).toHaveLength(KEYS * (OFFERS - 1));
    const notes = await readNotes(redis, name);
    // A message is handled again if its process was killed, but there is one for each key.
    const numbers = [...new Set(notes.map(({ id }) => id))];
    expectEachOnce(
      upTo(KEYS),
      numbers.map((number) => number % KEYS),
    );
    expect(await completedCount(redis, name)).toBe(KEYS);
    for (const ids of results.values()) expect(ids.size).toBe(1);
    // Otherwise there was no storm.
    expect(crew.kills).toBeGreaterThan(2);
    expect(notes.filter(({ what, attempt }) => what === "started" && attempt > 1)).not.toEqual([]);
  },
  180_000,
);

test.each([
  { what: "an ordinary queue", options: {}, rounds: 5 },
  { what: "partitions", options: { partitions: 3 }, rounds: 5 },
  { what: "partitions whose number changes", options: { partitions: 2 }, rounds: 1, count: 5 },
])(
  "$what: 100 offers whose connection is cut, and which are sent again once they were handled",
  async ({ options, rounds, count }) => {
    const name = uniqueName("once-cut");
    const proxy = await startProxy(redisUrl());
    const roles = new Roles(proxy);
    const line = newLineThatMayFail({ redis: proxy.url, transfer: false, callTimeout: 30_000 });
    const queue = line.getReliableQueue<string>(name, options);
    const worker = newLine();
    const handled: string[] = [];
    worker.getReliableQueue<string>(name, options).subscribe((key) => void handled.push(key), {
      concurrency: 10,
    });
    const offer = (key: string) => queue.offer(key, 0, { key, once: "handled" });
    // From now on Redis knows the script.
    const warm = await Promise.all(upTo(30).map((i) => offer(`warm ${i}`)));
    await eventually(() => handled.length === warm.length);
    handled.length = 0;

    let isLosing = false;
    proxy.onReply = (_, connection) =>
      isLosing && roles.nameOf(connection)?.startsWith("delayline:commands") ? "drop" : "forward";
    const results: OfferResult[] = [];
    const keys = upTo(100).map((i) => `key ${i}`);
    for (const round of upTo(rounds)) {
      isLosing = true;
      const some = keys.filter((_, i) => i % rounds === round);
      const offers: Promise<OfferResult>[] = [];
      for (const key of some) {
        offers.push(offer(key));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const offering = Promise.all(offers);
      offering.catch(() => {});
      // Their messages are gone, and their keys are free.
      await eventually(() => some.every((key) => handled.includes(key)));
      await eventually(async () => {
        const stats = await worker.getReliableQueue(name, options).stats();
        expect(stats).toMatchObject({ delayed: 0, ready: 0, inFlight: 0 });
      });
      proxy.refuse();
      proxy.cut();
      isLosing = false;
      if (count !== undefined) await worker.setPartitions(name, count);
      await proxy.accept();
      results.push(...(await offering));
    }
    expect(results.map(({ outcome }) => outcome)).toEqual(keys.map(() => "added"));
    expect(new Set(results.map(({ id }) => id)).size).toBe(keys.length);
    await eventually(async () => {
      const stats = await worker.getReliableQueue(name, options).stats();
      expect(stats).toMatchObject({ delayed: 0, ready: 0, inFlight: 0 });
    });
    expectEachOnce(keys, handled);
    // A new offer is no copy.
    expect(await offer("key 0")).toMatchObject({ outcome: "added" });
  },
);
