import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import type { Child } from "../../scripts/child/child.ts";
import { startChild } from "../helpers/child.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer, type OwnServer } from "../helpers/own-server.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";
import { missing, repeated } from "../helpers/ledger.ts";
import { bundle } from "../helpers/bundle.ts";
import type { Taking } from "./workers/storm-consumer.ts";
import type { Entry, ProducerReport } from "./workers/storm-producer.ts";

/*
 * Every kind of trouble, at random and together, and an account of every message.
 *
 * Two processes offer, cancel, put off and replace messages, two take them, and two only move them. Meanwhile movers
 * are killed, connections are cut, scripts are forgotten, and Redis is killed and restarted. A message held by a
 * consumer that dies is lost (at most once), so only parties that hold no message die here: no consumer is killed, no
 * blocking connection is cut, and nobody takes while Redis is killed.
 */

/** A few seconds show that it works; `npm run soak` makes it long. */
const { STORM_SECONDS } = process.env;
const SECONDS = Number(STORM_SECONDS ?? 3);

/** Longest pause between two troubles, in milliseconds. */
const PAUSE = 500;

/** Offers of each producer, whatever goes wrong. */
const ANSWERS = [
  "offer: added",
  "offer: existing",
  "offer: replaced",
  "offer: updated",
  "cancel: true",
  "cancel: false",
  "reschedule: true",
];

const program = (name: string) => new URL(`workers/${name}.ts`, import.meta.url);

test(
  `a storm of ${SECONDS} s: each message is delivered once, or as its producer was told`,
  async () => {
    // Keeps the file short, so that restarts are quick.
    const args = ["--auto-aof-rewrite-min-size", "1mb"];
    const server = await startOwnServer({ appendOnly: true, args });
    const redis = newRedis(server.url);
    const name = uniqueName();
    const env = { REDIS: server.url, PORT: String(server.port), QUEUE: name };
    const producers = ["yes", "no"].map((RESEND) => {
      const own = { RESEND, NAME: RESEND === "yes" ? "resent" : "sent once" };
      return startChild(program("storm-producer"), { env: { ...env, ...own } });
    });
    const consumers = [1, 2].map(() => startChild(program("storm-consumer"), { env }));
    const mover = await bundle(program("mover"));
    const startMover = () => startChild(mover, { env });
    const movers = [startMover(), startMover()];
    await Promise.all([...producers, ...consumers, ...movers].map(isReady));

    const troubles = await rage({ server, redis, consumers, movers, startMover });

    for (const producer of producers) await producer.send("stop");
    const reports = await Promise.all(
      producers.map(async (producer) => (await producer.next(isNoWord, 30_000)) as ProducerReport),
    );
    await eventually(async () => (await redis.zcard(timeoutsOf(name))) === 0, { within: 30_000 });
    await eventually(async () => (await redis.llen(name)) === 0, { within: 30_000 });
    for (const consumer of consumers) await consumer.send("stop");
    const takings = await Promise.all(
      consumers.map(async (consumer) => (await consumer.next(isNoWord, 30_000)) as Taking[]),
    );

    // A message that a consumer gave back as it ended was not delivered, but it is not lost.
    const left = await redis.lrange(name, 0, -1);
    const account = settle(
      reports.flatMap(({ entries }) => entries),
      takings.flat(),
      left,
    );
    const answers = reports.map((report) => report.answers);
    if (STORM_SECONDS !== undefined) console.log(account.counts, troubles, ...answers);
    expect(account.faults).toEqual({ lost: [], twice: [], against: [], invented: [], early: [] });
    expect(account.counts.balance).toBe(0);
    // Each of these has happened.
    for (const given of answers)
      expect(Object.keys(given)).toEqual(expect.arrayContaining(ANSWERS));
  },
  SECONDS * 1000 + 90_000,
);

interface Scene {
  readonly server: OwnServer;
  readonly redis: Redis;
  readonly consumers: readonly Child[];
  readonly movers: Child[];
  readonly startMover: () => Child;
}

/** Makes trouble until the time is over. Returns how often each kind happened. */
async function rage({ server, redis, consumers, movers, startMover }: Scene) {
  const troubles = {
    moversKilled: async () => {
      const victim = Math.floor(Math.random() * movers.length);
      await movers[victim]?.kill("SIGKILL");
      movers[victim] = startMover();
    },
    connectionsCut: async () => {
      for (const id of await unblockedConnections(redis)) {
        if (Math.random() < 0.5) await redis.client("KILL", "ID", id);
      }
    },
    scriptsForgotten: async () => {
      await redis.script("FLUSH");
    },
    restarts: async () => {
      for (const consumer of consumers) await consumer.send("pause");
      for (const consumer of consumers) await consumer.next((word) => word === "paused");
      await server.kill();
      await server.restart();
      for (const consumer of consumers) await consumer.send("resume");
    },
  };
  const counts = { moversKilled: 0, connectionsCut: 0, scriptsForgotten: 0, restarts: 0 };
  const end = performance.now() + SECONDS * 1000;
  const kinds = Object.keys(troubles) as (keyof typeof troubles)[];
  // Each kind in turn, at a random pace.
  for (let n = 0; performance.now() < end || n < kinds.length; n++) {
    const kind = kinds[n % kinds.length] as keyof typeof troubles;
    await sleep(Math.random() * PAUSE);
    await troubles[kind]();
    counts[kind]++;
  }
  return counts;
}

/** Ids of the library's connections that hold no message that exists nowhere else. */
async function unblockedConnections(redis: Redis): Promise<string[]> {
  const list = String(await redis.client("LIST")).split("\n");
  const ours = list.filter((one) => / name=delayline:(commands|background|subscriber)\b/.test(one));
  return ours.map((one) => /^id=(\d+)/.exec(one)?.[1] ?? "");
}

/** Compares the messages that had to be delivered with those that were. */
function settle(entries: readonly Entry[], takings: readonly Taking[], left: readonly string[]) {
  const wanted = (delivered: Entry[1]) =>
    entries.filter((entry) => entry[1] === delivered).map(([payload]) => payload);
  const taken = takings.map(([payload]) => payload);
  const delivered = [...taken, ...left];
  const once = wanted("once");
  const any = new Set(wanted("any"));
  const unknown = new Set([...wanted("unknown"), ...any]);
  const never = new Set(wanted("never"));
  const notBefore = new Map(entries.map(([payload, , instant]) => [payload, instant]));
  const unknownDelivered = delivered.filter((payload) => unknown.has(payload)).length;
  return {
    faults: {
      lost: missing(once, delivered),
      twice: repeated(delivered).filter((payload) => !any.has(payload)),
      // Cancelled, replaced, rejected or not stored, and delivered all the same.
      against: delivered.filter((payload) => never.has(payload)),
      invented: missing(delivered, notBefore.keys()),
      early: takings.filter(
        ([payload, at]) => at < (notBefore.get(payload) ?? 0) && !any.has(payload),
      ),
    },
    counts: {
      offered: entries.length,
      toBeDelivered: once.length,
      notToBeDelivered: never.size,
      unknown: unknown.size,
      unknownDelivered,
      delivered: delivered.length,
      balance: once.length + unknownDelivered - delivered.length,
    },
  };
}

const isReady = (child: Child) => child.next((word) => word === "ready", 30_000);
const isNoWord = (message: unknown) => typeof message === "object";
const timeoutsOf = (name: string) => `redisson_delay_queue_timeout:{${name}}`;
