import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import { REFUSAL } from "../../../src/lua/guarded.ts";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { startCluster } from "../../helpers/cluster.ts";
import { startChild } from "../../helpers/child.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { missing, repeated } from "../../helpers/ledger.ts";
import { bundle } from "../../helpers/bundle.ts";
import type { PartitionsReport, Takings } from "../workers/partitions-worker.ts";
import { upTo } from "../../helpers/numbers.ts";

/*
 * 2 -> 8 -> 3 partitions, of a plain and of a reliable queue at once, under 1,000 offers a second (500 in the short
 * form) with keys, cancels, reschedules and replacements. Processes that are killed begin each change, and another one
 * finishes it. One process sleeps through a whole change. At the end, every message and every result is accounted for.
 */

/** Seconds of traffic between two changes; `npm run soak` makes it long. */
const { PARTITIONS_SECONDS } = process.env;
const SECONDS = Number(PARTITIONS_SECONDS ?? 0.25);

/** How many processes begin each change and are killed during it. */
const VICTIMS = PARTITIONS_SECONDS === undefined ? 1 : 2;

/** The longest delay, in milliseconds. */
const DELAY = PARTITIONS_SECONDS === undefined ? "800" : "3000";

/** Messages that stay to the end. A change moves them first. */
const LATE = upTo(1000).map((i) => `late ${i}`);
const HOUR = 3_600_000;

/** Offers a second, of all producers. */
const RATE = PARTITIONS_SECONDS === undefined ? 500 : 1000;

interface Place {
  /** The environment variable that tells workers where Redis is. */
  readonly REDIS: string;
  readonly options: NonNullable<Parameters<typeof newLine>[0]>;
  /** The client for the keys of a partition. */
  readonly redisFor: (partition: number) => Redis | Cluster;
}

const places: Record<string, () => Promise<Place>> = {
  "one server": async () => {
    const redis = newRedis();
    return await Promise.resolve({
      REDIS: JSON.stringify({ urls: [redisUrl()] }),
      options: {},
      redisFor: () => redis,
    });
  },
  "two servers": async () => {
    const other = await startOwnServer();
    const urls = [redisUrl(), other.url];
    const clients = urls.map((url) => newRedis(url));
    return {
      REDIS: JSON.stringify({ urls }),
      options: { redis: urls },
      redisFor: (partition) => clients[partition % 2] as Redis,
    };
  },
  "a Cluster": async () => {
    const { cluster, nodes } = await startCluster();
    return {
      REDIS: JSON.stringify({ ports: nodes.map(({ port }) => port) }),
      options: { redis: cluster },
      redisFor: () => cluster,
    };
  },
};

describe.each(Object.keys(places))("on %s", (where) => {
  test(
    "2 -> 8 -> 3 partitions: no message lost or delivered twice, every result true",
    async () => {
      const { REDIS, options, redisFor } = await (places[where] as () => Promise<Place>)();
      const name = uniqueName();
      const program = await bundle(new URL("../workers/partitions-worker.ts", import.meta.url));
      const startWorker = (own: NodeJS.ProcessEnv) =>
        startChild(program, {
          env: { REDIS, QUEUE: name, RATE: String(RATE / 3), DELAY, ...own },
        });
      const line = newLine({ ...options, codec: "string", transfer: false });
      const plain = line.getDelayedQueue<string>(`${name}-plain`, { partitions: 2 });
      const reliable = line.getReliableQueue<string>(`${name}-reliable`, {
        partitions: 2,
        group: "a",
        leaseTimeout: 5000,
        maxAttempts: 20,
      });
      // The workers below name other numbers of partitions, but these are settled now.
      await Promise.all([plain.size(), reliable.size()]);

      for (const queue of [plain, reliable]) {
        await queue.offerMany(LATE.map((payload) => ({ payload, delay: HOUR })));
      }
      const workers = ["2", "8", "5"].map((PARTITIONS, i) =>
        startWorker({ PARTITIONS, NAME: `worker ${i}` }),
      );
      const changers = upTo(2 * VICTIMS).map(() => startWorker({ PARTITIONS: "4" }));
      await Promise.all([...workers, ...changers].map((child) => child.next(isLoaded, 30_000)));
      const sleeper = workers[2] as Child;
      for (const worker of workers.slice(0, 2)) await worker.send("take reliable");
      await eventually(async () => {
        // A group only gets messages that become ready after it exists.
        for (const partition of [0, 1]) {
          const { stream } = queueKeys(partitionName(`${name}-reliable`, partition));
          expect(await redisFor(partition).xinfo("GROUPS", stream)).toHaveLength(2);
        }
      });
      for (const worker of workers) {
        for (const word of ["take plain", "produce"]) await worker.send(word);
      }
      await sleep(SECONDS * 1000);

      const change = async (to: number) => {
        process.kill(sleeper.pid, "SIGSTOP");
        for (const changer of changers.splice(0, VICTIMS)) {
          await changer.send({ to, dieAfter: Math.random() * 10 });
          await changer.exit;
          // Meanwhile messages move only when a call looks for them.
          await sleep(SECONDS * 1000);
        }
        await Promise.all(
          ["plain", "reliable"].map((kind) => line.setPartitions(`${name}-${kind}`, to)),
        );
        process.kill(sleeper.pid, "SIGCONT");
        await sleep(SECONDS * 1000);
      };
      await change(8);
      await change(3);

      await sleeper.send("take reliable");
      // Each of these has happened.
      await eventually(
        async () => {
          const given = await Promise.all(
            workers.map(async (worker) => {
              await worker.send("what answers");
              return (await worker.next(isNoWord, 30_000)) as string[];
            }),
          );
          expect(given.flat()).toEqual(expect.arrayContaining(ANSWERS));
        },
        { within: 60_000 },
      );
      const reports = await Promise.all(
        workers.map(async (worker) => {
          await worker.send("finish");
          return (await worker.next(isNoWord, 30_000)) as PartitionsReport;
        }),
      );
      const entries = reports.flatMap((report) => report.entries);
      await eventually(
        async () => {
          for (const queue of [`${name}-plain`, `${name}-reliable`]) {
            const all = await line.partitions(queue);
            expect(all.reduce((sum, { delayed }) => sum + delayed, 0)).toBe(LATE.length);
            for (const one of all) expect(one).toMatchObject({ retries: 0, ready: 0, inFlight: 0 });
          }
        },
        // A busy machine falls behind the offers.
        { within: 60_000 },
      );
      for (const queue of [plain, reliable]) {
        const left = await line.getDelayedQueue<string>(queue.name).insertionOrder.readAll();
        expect(left.toSorted()).toEqual(LATE.toSorted());
        expect(await queue.clear()).toBe(LATE.length);
      }
      const all = await Promise.all(
        workers.map(async (worker) => {
          await worker.send("end");
          return (await worker.next(isNoWord, 30_000)) as Takings;
        }),
      );

      const calls = reports.reduce((sum, report) => sum + report.calls, 0);
      const rejected = reports.flatMap((report) => report.rejected);
      const account = { plain: settlePlain(entries, all), reliable: settleReliable(entries, all) };
      if (PARTITIONS_SECONDS !== undefined) {
        console.log(where, { calls, rejected: rejected.length }, ...reports.map((r) => r.answers));
      }
      expect(account).toEqual({
        plain: { lost: [], twice: [], against: [], invented: [] },
        reliable: { lost: [], twice: [], against: [], invented: [] },
      });
      expect(reports.flatMap((report) => report.wrong)).toEqual([]);
      expect(new Set(rejected)).toEqual(rejected.length > calls / 100 ? [] : new Set(rejected));
      const dead = all.flatMap((one) => one.dead.map(([, payload]) => payload));
      const letters: string[] = [];
      for await (const { payload } of reliable.deadLetters) letters.push(payload as string);
      expect(letters.toSorted()).toEqual(dead.toSorted());
      // A change is not reported as an error.
      expect(all.flatMap(({ errors }) => errors).filter((one) => one.includes(REFUSAL))).toEqual(
        [],
      );
      await expectNothingLeft(redisFor, name);
    },
    180_000 + SECONDS * 10_000,
  );
});

const ANSWERS = [
  "offer: added",
  "offer: existing",
  "offer: replaced",
  "offer: updated",
  "cancel: true",
  "cancel: false",
  "reschedule: true",
  "get: true",
];

/** Partitions that have gone keep the keys that inform late processes. */
async function expectNothingLeft(redisFor: Place["redisFor"], name: string): Promise<void> {
  const left: string[] = [];
  for (const queue of [`${name}-plain`, `${name}-reliable`]) {
    for (let partition = 3; partition < 8; partition++) {
      const keys = queueKeys(partitionName(queue, partition));
      const redis = redisFor(partition);
      for (const [what, key] of Object.entries(keys)) {
        if (["channel", "partitions", "arrivals", "receipts", "mover"].includes(what)) continue;
        if ((await redis.exists(key)) === 0) continue;
        if (what === "journal" && (await redis.hexists(key, "rows")) === 0) continue;
        left.push(`${queue} ${partition}: ${what}`);
      }
    }
  }
  expect(left).toEqual([]);
}

/** Compares the messages that had to be delivered with those that were. */
function settlePlain(entries: PartitionsReport["entries"], all: readonly Takings[]) {
  const own = entries.filter(([payload]) => payload.includes(" p "));
  const taken = all.flatMap(({ plain }) => plain);
  return settle(own, taken, () => false);
}

/** Likewise for each group. A message that is dead, or was cancelled before a retry, counts as done. */
function settleReliable(entries: PartitionsReport["entries"], all: readonly Takings[]) {
  const own = entries.filter(([payload]) => payload.includes(" r "));
  const retrying = all.flatMap((takings) => takings.retrying);
  const cancelled = new Set(retrying.filter(([, was]) => was).map(([payload]) => payload));
  const [a, b] = ["a", "b"].map((name) => {
    const ends = all.flatMap(({ done, dead }) => [...done, ...dead]);
    const done = ends.filter(([group]) => group === name).map(([, payload]) => payload);
    // A retrying message is cancelled or replaced for the group that failed. The other may have handled it.
    const others = all.flatMap(({ failed }) => failed.filter(([group]) => group !== name));
    const mayBeDone = new Set(others.map(([, payload]) => payload));
    return settle(own, done, (payload) => name === "a" && cancelled.has(payload), mayBeDone);
  });
  const attempts = all.flatMap(({ done, failed }) => [...done, ...failed]).map(String);
  return {
    lost: [...(a?.lost ?? []), ...(b?.lost ?? [])],
    twice: [...(a?.twice ?? []), ...(b?.twice ?? []), ...repeated(attempts)],
    against: [...(a?.against ?? []), ...(b?.against ?? [])],
    invented: [...(a?.invented ?? []), ...(b?.invented ?? [])],
  };
}

function settle(
  entries: PartitionsReport["entries"],
  delivered: readonly string[],
  isCancelled: (payload: string) => boolean,
  mayBeDone: ReadonlySet<string> = new Set(),
) {
  const wanted = (what: string) =>
    entries.filter(([, verdict]) => verdict === what).map(([payload]) => payload);
  const never = new Set(wanted("never"));
  return {
    lost: missing(wanted("once"), delivered).filter((payload) => !isCancelled(payload)),
    twice: repeated(delivered),
    // Cancelled, replaced, rejected or not stored, and delivered all the same.
    against: delivered.filter(
      (payload) => (never.has(payload) && !mayBeDone.has(payload)) || isCancelled(payload),
    ),
    invented: missing(
      delivered,
      entries.map(([payload]) => payload),
    ),
  };
}

const isLoaded = (word: unknown) => word === "loaded";
const isNoWord = (message: unknown) => typeof message === "object";
