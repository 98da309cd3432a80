import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Crew, MESSAGES, RELIABLE_MESSAGES } from "./crew.ts";
import { completedCount, readNotes, settle } from "./handled.ts";
import { upTo } from "../../helpers/numbers.ts";

/*
 * One of four processes that handle messages is killed every 300 ms, for as long as there are messages. None is lost.
 * The messages that a dead process held are started again, and no others. A message that it had completed is completed
 * again only if the acknowledgement was not yet on its way.
 */

const WORKERS = 4;
const CONCURRENCY = 20;
const KILL_EVERY = 300;

/** Messages that are offered at once. */
const CHUNK = 1_000;

/** Milliseconds after which the kills stop, whatever is left. */
const LONGEST = 30_000 + MESSAGES * 10;

/** Milliseconds: a thousand messages are due in a second, more than the workers can handle. */
const newDelay = () => Math.random() * MESSAGES;

test(
  `${MESSAGES} messages while a worker is killed every ${KILL_EVERY} ms: none is lost`,
  async () => {
    const name = uniqueName();
    const redis = newRedis();
    const { stream } = queueKeys(name);
    const producer = newLine({ codec: "json", transfer: false });
    const queue = producer.getReliableQueue<number>(name);
    const env = { REDIS: redisUrl(), LEDGER: redisUrl(), QUEUE: name, WORK: "hurry" };
    const crew = await Crew.start(WORKERS, { ...env, CONCURRENCY: String(CONCURRENCY) }, 2);
    const stored = new Map<number, number>();
    for (let from = 0; from < MESSAGES; from += CHUNK) {
      const ids = upTo(Math.min(CHUNK, MESSAGES - from)).map((i) => from + i);
      const offered = await queue.offerMany(ids.map((payload) => ({ payload, delay: newDelay() })));
      for (const [i, { deadline }] of offered.entries()) stored.set(from + i, deadline);
    }

    const latest = performance.now() + LONGEST;
    while (performance.now() < latest && (await completedCount(redis, name)) < MESSAGES) {
      const next = sleep(KILL_EVERY);
      await crew.replaceOne();
      await next;
    }
    // Messages completed by workers that died before the acknowledgement.
    await eventually(async () => expect(await redis.xlen(stream)).toBe(0), { within: 60_000 });
    expect(await redis.xpending(stream, "default")).toEqual([0, null, null, null]);

    const account = settle(stored, await readNotes(redis, name));
    const { kills } = crew;
    if (RELIABLE_MESSAGES !== undefined) console.log({ kills, ...account.counts });
    expect(account.lost).toEqual([]);
    expect(account.early).toEqual([]);
    expect(account.counts.startedAgain).toBeLessThanOrEqual(kills * CONCURRENCY);
    // On a quiet machine less than half of the kills hit such a message. On a busy one, more time passes between
    // completion and acknowledgement. Without acknowledgements the count would equal that of the restarted messages.
    expect(account.counts.completedAgain).toBeLessThanOrEqual(2 * kills);
    // The kills did interrupt handlers.
    expect(account.counts.startedAgain).toBeGreaterThan(kills);
    expect(await queue.deadLetters.size()).toBe(0);
  },
  LONGEST + 120_000,
);

test("handlers that run longer than the lease timeout keep their leases", async () => {
  const name = uniqueName();
  const redis = newRedis();
  const env = { REDIS: redisUrl(), LEDGER: redisUrl(), QUEUE: name, LEASE: "2500" };
  // The handlers pause for up to twice this time.
  await Crew.start(2, { ...env, PAUSE: "3000" });
  const queue = newLine({ codec: "json", transfer: false }).getReliableQueue<number>(name);
  const messages = upTo(2 * CONCURRENCY).map((payload) => ({ payload, delay: 0 }));
  await queue.offerMany(messages);
  const isDone = async () => (await completedCount(redis, name)) === messages.length;
  await eventually(isDone, { within: 30_000 });
  await eventually(async () => expect(await redis.xlen(queueKeys(name).stream)).toBe(0));
  const { counts } = settle(new Map(), await readNotes(redis, name));
  expect(counts).toMatchObject({ startedAgain: 0, completedAgain: 0 });
});
