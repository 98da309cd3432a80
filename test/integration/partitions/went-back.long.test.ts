import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DelayedQueue, ReliableQueue } from "../../../src/index.ts";
import { parseFact } from "../../../src/partitions/ring/fact.ts";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLineThatMayFail, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { expectEachOnce } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { OwnServer, startOwnServer } from "../../helpers/own-server.ts";
import { newRedis } from "../../helpers/redis.ts";

// Redis goes back to an earlier state, as in a failover to a replica that lags or a restart from a copy, while processes
// run that know of a change of the number of partitions that Redis has forgotten.

const HOUR = 3_600_000;

/** A server, and copies of its data. */
class Past {
  readonly server: OwnServer;
  readonly #redis;
  #count = 0;

  constructor(server: OwnServer) {
    this.server = server;
    this.#redis = newRedis(server.url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
    this.#redis.on("error", () => {});
  }

  /** Keeps the state of now; returns how to go back there. */
  async keep(): Promise<() => Promise<void>> {
    await this.#redis.save();
    const { directory } = this.server;
    const [dump, kept] = ["dump.rdb", `kept-${++this.#count}.rdb`].map((one) =>
      join(directory, one),
    );
    await copyFile(dump!, kept!);
    return async () => {
      await this.server.kill();
      await copyFile(kept!, dump!);
      await this.server.restart();
    };
  }

  /** How many partitions the queue has; undefined while that is changing. */
  async countOf(queue: string): Promise<number | undefined> {
    const fact = parseFact((await this.#redis.get(partitionsOf(queue))) ?? "");
    return fact?.state === "stable" ? fact.to : undefined;
  }

  /** How many delayed messages there are in each part, the ordinary queue first. */
  async places(queue: string): Promise<number[]> {
    const names = [queue, ...upTo(8).map((partition) => partitionName(queue, partition))];
    return await Promise.all(names.map((name) => this.#redis.zcard(queueKeys(name).timeouts)));
  }
}

const partitionsOf = (queue: string) => queueKeys(partitionName(queue, 0)).partitions;

const open = (url: string): TestLine =>
  newLineThatMayFail({ redis: url, codec: "json", unreachableTimeout: 30_000 });

type Kind = "plain" | "reliable" | "exclusive";

type AnyQueue = DelayedQueue<number> | ReliableQueue<number>;

function openQueue(line: TestLine, kind: Kind, partitions: number | undefined): AnyQueue {
  const options = partitions === undefined ? {} : { partitions };
  if (kind === "plain") return line.getDelayedQueue<number>("q", options);
  if (kind === "reliable") return line.getReliableQueue<number>("q", options);
  return line.getReliableQueue<number>("q", { ...options, exclusive: true });
}

function consume(
  line: TestLine,
  kind: Kind,
  queue: AnyQueue,
  partitions: number | undefined,
  got: number[],
): void {
  const handle = (n: number) => void got.push(n);
  if (kind !== "plain") (queue as ReliableQueue<number>).subscribe(handle);
  else {
    const options = partitions === undefined ? {} : { partitions };
    line.getBlockingQueue<number>("q", options).subscribe(handle);
  }
}

const shapes = [
  { shape: "fewer", before: 4, changes: [2] },
  { shape: "more", before: 2, changes: [4] },
  { shape: "from an ordinary queue", before: undefined, changes: [3] },
  { shape: "several changes ago", before: 2, changes: [8, 3] },
  { shape: "from an ordinary queue, several changes ago", before: undefined, changes: [4, 2] },
  { shape: "the same number again", before: 4, changes: [2, 4] },
] as const;

for (const kind of ["plain", "reliable", "exclusive"] as const) {
  test.each(shapes.filter(({ before }) => kind !== "exclusive" || before !== undefined))(
    `$shape: after Redis went back each message of a ${kind} queue is found, cancelled or delivered`,
    { timeout: 120_000 },
    async ({ before, changes }) => {
      const past = new Past(await startOwnServer());
      const line = open(past.server.url);
      const queue = openQueue(line, kind, before);
      const got: number[] = [];
      consume(line, kind, queue, before, got);
      const all = upTo(60);
      const ids = new Map<number, string>();
      for (const n of all) ids.set(n, (await queue.offer(n, HOUR, { key: `k${n}` })).id);
      const goBack = await past.keep();
      for (const count of changes) await line.setPartitions("q", count);
      await goBack();

      // At once, while nobody may have noticed; and by a process that knows nothing but that there are partitions.
      const fresh = before === undefined ? queue : openQueue(open(past.server.url), kind, before);
      const found = await Promise.all(
        all.map(async (n) => await (n % 2 ? queue : fresh).get(n % 3 ? `k${n}` : ids.get(n)!)),
      );
      expect(all.filter((_, i) => found[i] === undefined)).toEqual([]);
      const again = await queue.offer(0, HOUR, { key: "k1", onDuplicate: "ignore" });
      expect(again.outcome).toBe("existing");
      const cancelled = all.filter((n) => n % 2 === 0);
      const verdicts = await Promise.all(
        cancelled.map((n) => (n % 3 ? queue : fresh).cancel(n % 4 ? `k${n}` : ids.get(n)!)),
      );
      expect(verdicts.filter((one) => one)).toHaveLength(cancelled.length);

      // Nobody calls setPartitions. The newest number that a process knows is reached all the same.
      const wanted = changes.at(-1)!;
      await eventually(async () => (await past.countOf("q")) === wanted, { within: 60_000 });
      const left = all.filter((n) => n % 2 !== 0);
      const [ordinary, ...places] = await past.places("q");
      expect(ordinary).toBe(0);
      expect(places.slice(wanted).every((count) => count === 0)).toBe(true);
      expect(places.reduce((sum, count) => sum + count, 0)).toBe(left.length);
      expect(await queue.size()).toBe(left.length);
      for (const n of left) expect(await queue.reschedule(`k${n}`, 0)).toBeDefined();
      await eventually(() => got.length >= left.length, { within: 60_000 });
      expectEachOnce(left, got);
    },
  );
}

test("a copy in which only partition 0 knows that the ordinary queue is taken in strands nothing", async () => {
  const past = new Past(await startOwnServer());
  const line = open(past.server.url);
  const queue = line.getDelayedQueue<number>("q");
  const all = upTo(20);
  await queue.offerMany(all.map((n) => ({ payload: n, delay: HOUR, key: `k${n}` })));
  const redis = newRedis(past.server.url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  redis.on("error", () => {});
  await redis.set(partitionsOf("q"), "2:3:0:moving:1");
  const goBack = await past.keep();
  await redis.del(partitionsOf("q"));
  await line.setPartitions("q", 3);
  await goBack();
  const found = await Promise.all(all.map((n) => queue.get(`k${n}`)));
  expect(found.filter((one) => one === undefined)).toEqual([]);
  await eventually(async () => (await past.countOf("q")) === 3, { within: 60_000 });
  await eventually(async () => expect((await past.places("q"))[0]).toBe(0));
  expect(await queue.size()).toBe(all.length);
});

test.each([
  { kind: "plain", before: 2, changes: [8, 3] },
  { kind: "reliable", before: undefined, changes: [3, 1] },
] as const)(
  "whatever moment of its changes a $kind queue goes back to, nothing is stranded",
  { timeout: 600_000 },
  async ({ kind, before, changes }) => {
    const past = new Past(await startOwnServer());
    const line = open(past.server.url);
    const queue = openQueue(line, kind, before);
    const got: number[] = [];
    consume(line, kind, queue, before, got);
    const all = upTo(400);
    await queue.offerMany(all.map((n) => ({ payload: n, delay: HOUR, key: `k${n}` })));
    const copies = [await past.keep()];
    const change = (async () => {
      for (const count of changes) await line.setPartitions("q", count);
    })();
    const end = new AbortController();
    void change.finally(() => end.abort());
    while (!end.signal.aborted) copies.push(await past.keep());
    await change;
    const wanted = changes.at(-1)!;
    const some = copies.filter((_, i) => i % Math.ceil(copies.length / 12) === 0);
    for (const goBack of some) {
      await goBack();
      const keys = all.filter((n) => n % 40 === 7).map((n) => `k${n}`);
      const found = await Promise.all(keys.map((key) => queue.get(key)));
      expect(found.filter((one) => one === undefined)).toEqual([]);
      await eventually(async () => (await past.countOf("q")) === wanted, { within: 60_000 });
      await eventually(async () => {
        const [ordinary, ...places] = await past.places("q");
        expect({ ordinary, gone: places.slice(wanted).filter((count) => count > 0) }).toEqual({
          ordinary: 0,
          gone: [],
        });
        expect(places.reduce((sum, count) => sum + count, 0)).toBe(all.length);
      });
      for (const n of all.slice(0, 40)) expect(await queue.get(`k${n}`)).toBeDefined();
    }
    expect(got).toEqual([]);
  },
);
