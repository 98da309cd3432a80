import { expect, test } from "vitest";
import { partitionName } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newAclUser } from "../../helpers/acl-user.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { DAY, HOUR, MINUTE, newClock, SECOND } from "../../helpers/test-clock.ts";

// Signs of life that change nothing are jumped over, and nobody's death is.

const EIGHT = "2026-03-28T08:00:00.000Z";
const START = Date.parse(EIGHT);

/** The keys of a partition. */
const keysOf = (name: string, partition: number) => queueKeys(partitionName(name, partition));

test.each([
  { kind: "ordinary", exclusive: false },
  { kind: "exclusive", exclusive: true },
])(
  "three days, eight partitions and two clients are a few commands: $kind",
  async ({ exclusive }) => {
    const { url } = await startOwnServer();
    const redis = newRedis(url);
    const clock = await newClock({ now: EIGHT });
    const lines = [newLine({ redis: url }), newLine({ redis: url })];
    const name = uniqueName("days");
    const seen: string[] = [];
    const queues = lines.map((line) =>
      line.getReliableQueue<string>(
        name,
        exclusive ? { partitions: 8, exclusive: true } : { partitions: 8 },
      ),
    );
    for (const queue of queues) {
      queue.subscribe((text) => void seen.push(`${text} ${clock.now.getTime() - START}`));
    }
    await clock.advance(30 * SECOND);
    const dues = Array.from({ length: 20 }, (_, i) => (i + 1) * 3.5 * HOUR + i);
    for (const [i, due] of dues.entries()) {
      await queues[i % 2]?.offer(`${i} at`, START + due - clock.now.getTime(), {
        partitionKey: `key ${i}`,
      });
    }
    const commands = async () =>
      Number(/total_commands_processed:(\d+)/.exec(await redis.info())?.[1]);
    const before = await commands();
    await clock.advance("3 days");
    expect(seen).toEqual(dues.map((due, i) => `${i} at ${due}`));
    // An hour of signs of life alone would be 30,000 or more.
    expect((await commands()) - before).toBeLessThan(15_000);
    // Redis shows what it would show if the signs had been given.
    const now = clock.now.getTime();
    for (let i = 0; i < (exclusive ? 8 : 0); i++) {
      const { holder } = keysOf(name, i);
      const until = Number(await redis.hget(holder, "until")) - now;
      expect(until).toBeGreaterThan(0);
      expect(until).toBeLessThanOrEqual(2500);
    }
    const signs = await redis.zrange(keysOf(name, 0).members, "0", "-1", "WITHSCORES");
    expect(signs).toHaveLength(4);
    for (const at of [signs[1], signs[3]]) {
      expect(now - Number(at)).toBeGreaterThanOrEqual(0);
      expect(now - Number(at)).toBeLessThanOrEqual(3000);
    }
  },
);

// Now and then the clock asks a server through the client whose user is switched off, and is refused.
const retry = 2;

test(
  "a client that dies in the middle of a day leaves its partitions to the other one, as soon as ever",
  { retry },
  async () => {
    const redis = newRedis();
    const clock = await newClock({ now: EIGHT });
    const name = uniqueName("death");
    const { user, url } = await newAclUser(redis, ["~*", "&*", "+@all"]);
    const line = newLine();
    // The clock asks the server as the first client that it sees: that must not be the one whose user is switched off.
    await line.serverTime();
    const mortal = newLineThatMayFail({ redis: url.href });
    const options = { partitions: 4, exclusive: true } as const;
    const by: Record<string, Map<string, number>> = { first: new Map(), second: new Map() };
    const consume = (who: "first" | "second", one: typeof line) =>
      one
        .getReliableQueue<string>(name, options)
        .subscribe((text) => void by[who]?.set(text, clock.now.getTime() - START));
    consume("first", line);
    consume("second", mortal);
    await clock.advance(30 * SECOND);
    const queue = line.getReliableQueue<string>(name, options);
    const keys = Array.from({ length: 16 }, (_, i) => `key ${i}`);
    for (const partitionKey of keys) {
      await queue.offer(`before ${partitionKey}`, HOUR, { partitionKey });
      await queue.offer(`after ${partitionKey}`, 12 * HOUR + SECOND, { partitionKey });
    }
    const reaper = uniqueName("reaper");
    line.getBlockingQueue<string>(reaper).subscribe(async () => {
      await redis.call("ACL", "SETUSER", user, "off");
      await redis.call("CLIENT", "KILL", "USER", user);
    });
    await line.getDelayedQueue<string>(reaper).offer("now", 12 * HOUR);
    await clock.advance("1 day");
    // Both had some partitions.
    const left = keys.filter((key) => by["second"]?.has(`before ${key}`));
    expect(left.length).toBeGreaterThan(0);
    expect(left.length).toBeLessThan(16);
    const at = 12 * HOUR + 30 * SECOND;
    for (const key of keys) {
      const handledAt = by["first"]?.get(`after ${key}`) ?? NaN;
      expect(handledAt - at).toBeGreaterThanOrEqual(SECOND);
      // The lease of the dead one lasts 2.5 seconds from its last renewal. If it moved due messages as well, the other one
      // steps in after 200 ms at most.
      expect(handledAt - at).toBeLessThanOrEqual((left.includes(key) ? 3 : 1) * SECOND + 200);
    }
    expect(by["second"]?.size).toBe(left.length);
  },
);

test("one server with two addresses gets each sign of life once", async () => {
  const clock = await newClock({ now: EIGHT });
  const url = new URL(redisUrl());
  url.hostname = url.hostname === "localhost" ? "127.0.0.1" : "localhost";
  const lines = [newLine(), newLine({ redis: url.href })];
  const name = uniqueName("addresses");
  const options = { partitions: 4, exclusive: true } as const;
  const tenures = new Map<string, Set<number>>();
  for (const line of lines) {
    line.getReliableQueue<string>(name, options).subscribe((key, { fence }) => {
      tenures.set(key, (tenures.get(key) ?? new Set()).add(fence ?? 0));
    });
  }
  await clock.advance(30 * SECOND);
  const queue = lines[0]?.getReliableQueue<string>(name, options);
  for (const after of [MINUTE, HOUR, 2 * DAY, 3 * DAY]) {
    for (let i = 0; i < 12; i++) {
      await queue?.offer(`key ${i}`, after, { partitionKey: `key ${i}` });
    }
  }
  await clock.advance("3 days");
  // Nobody took a partition meanwhile.
  expect([...tenures.values()].map(({ size }) => size)).toEqual(Array(12).fill(1));
});
