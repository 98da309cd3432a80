import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Crew, MESSAGES, RELIABLE_MESSAGES } from "./crew.ts";
import { ledgerKeys } from "./handled.ts";
import { upTo } from "../../helpers/numbers.ts";

/*
 * At every instant a message is in one place: delayed, ready or in flight, waiting for a retry, or dead. So the sum of
 * these counts, read at one instant, stays the same while handlers fail in every way and processes are killed. Once
 * handlers succeed the sum falls, but never ahead of them.
 */

const WORKERS = 3;
const COUNT = MESSAGES / 5;

/** Milliseconds in which no handler succeeds. */
const STORM = MESSAGES;

/** Milliseconds between two kills. */
const KILL_EVERY = 500;

/** Where the messages are at one instant, and how many are completed. */
interface Sample {
  readonly ready: number;
  readonly retrying: number;
  readonly delayed: number;
  readonly dead: number;
  readonly completed: number;
  readonly sum: number;
}

test(
  `${COUNT} messages in a storm of failures: at every instant each is in one place`,
  async () => {
    const name = uniqueName();
    const redis = newRedis();
    const { stream, retrying } = queueKeys(name);
    const queue = newLine({ codec: "json", transfer: false }).getReliableQueue<number>(name);
    const env = { REDIS: redisUrl(), LEDGER: redisUrl(), QUEUE: name, LEASE: "1000" };
    const crew = await Crew.start(WORKERS, { ...env, WORK: "fail", PAUSE: "50" }, 1);
    const messages = upTo(COUNT).map((payload) => ({ payload, delay: Math.random() * 2_000 }));
    await queue.offerMany(messages);

    const stormEnd = performance.now() + STORM;
    let lastKill = performance.now();
    let killing: Promise<void> | undefined;
    const seen = { samples: 0, delayed: 0, retrying: 0, ready: 0, dead: 0 };
    // Until each of these has happened; a busy machine takes longer.
    const isSeen = () => Object.values(seen).every((count) => count > 10);
    while (performance.now() < stormEnd || (!isSeen() && performance.now() < stormEnd + 60_000)) {
      const sample = await sampleOf(redis, name);
      expect(sample).toMatchObject({ sum: COUNT, completed: 0 });
      seen.samples++;
      for (const place of ["delayed", "retrying", "ready", "dead"] as const) {
        if (sample[place] > 0) seen[place]++;
      }
      if (performance.now() > lastKill + KILL_EVERY) {
        lastKill = performance.now();
        await killing;
        killing = crew.replaceOne();
      }
    }
    await killing;
    if (RELIABLE_MESSAGES !== undefined) console.log({ kills: crew.kills, ...seen });
    expect(isSeen(), JSON.stringify(seen)).toBe(true);

    await crew.say("complete");
    let last = await sampleOf(redis, name);
    const end = performance.now() + 60_000;
    while (last.sum > last.dead && performance.now() < end) {
      const next = await sampleOf(redis, name);
      expect(next.sum).toBeLessThanOrEqual(last.sum);
      expect(next.sum).toBeGreaterThanOrEqual(COUNT - next.completed);
      last = next;
    }
    expect(last).toMatchObject({ delayed: 0, retrying: 0, ready: 0, sum: COUNT - last.completed });
    expect(await redis.xpending(stream, "default")).toEqual([0, null, null, null]);
    await eventually(async () => expect(await redis.hlen(retrying)).toBe(0));
  },
  STORM * 2 + 180_000,
);

async function sampleOf(redis: Redis, name: string): Promise<Sample> {
  const { stream, retries, timeouts, dead } = queueKeys(name);
  const keys = [stream, retries, timeouts, dead, ledgerKeys(name).completed];
  const counts = (await redis.eval(SAMPLE, keys.length, ...keys)) as number[];
  const [ready = 0, retrying = 0, delayed = 0, died = 0, completed = 0] = counts;
  const sum = ready + retrying + delayed + died;
  return { ready, retrying, delayed, dead: died, completed, sum };
}

const SAMPLE = `
return {
  redis.call("XLEN", KEYS[1]), redis.call("ZCARD", KEYS[2]), redis.call("ZCARD", KEYS[3]),
  redis.call("XLEN", KEYS[4]), redis.call("SCARD", KEYS[5]),
}
`;
