import { createHash } from "node:crypto";
import { Delayline, defineQueue } from "delayline";
import { Redis } from "ioredis";
import { BenchServer } from "../bench-server.ts";
import type { Figure } from "../figure.ts";
import { makePayload } from "../payload.ts";
import type { Workload } from "../workload.ts";

/**
 * The price of one offer at a time, beside a bare script of the same algorithm that is sent through the same ioredis: in
 * turns, in one process, so that both have the same machine.
 */
export const oneOffer: Workload = {
  name: "one-offer",
  title: "one offer after the other, 100 B payloads, beside a bare script: 20 turns of 1,000 each",
  quickTitle:
    "one offer after the other, 100 B payloads, beside a bare script: 4 turns of 500 each",
  async round({ isQuick, progress }) {
    const [turns, count] = isQuick ? [4, 500] : [20, 1000];
    await using server = await BenchServer.start();
    await using line = new Delayline({ redis: server.url, transfer: false });
    const redis = new Redis(server.url);
    await redis.script("LOAD", BARE);
    const queue = line.open(defineQueue<string>("orders", { codec: "string" }));
    let number = 0;
    const kinds: Record<string, () => Promise<unknown>> = {
      bare: () => offerBarely(redis, number++),
      offer: () => queue.offer(makePayload(number++), DELAY),
      "keyed offer": () => queue.offer(makePayload(number), DELAY, { key: `order-${number++}` }),
    };
    const sums = new Map(Object.keys(kinds).map((name) => [name, { wall: 0, own: 0, redis: 0 }]));
    for (let turn = -2; turn < turns; turn++) {
      progress(`turn ${Math.max(0, turn)} of ${turns}`);
      for (const [name, offer] of Object.entries(kinds)) {
        await redis.config("RESETSTAT");
        const cpu = process.cpuUsage();
        const startedAt = performance.now();
        for (let i = 0; i < count; i++) await offer();
        const wall = performance.now() - startedAt;
        const { user, system } = process.cpuUsage(cpu);
        const { scriptTime } = await server.stats();
        // The first turns get the functions compiled.
        if (turn < 0) continue;
        const sum = sums.get(name)!;
        sum.wall += (wall * 1000) / count / turns;
        sum.own += (user + system) / count / turns;
        sum.redis += scriptTime / count / turns;
      }
    }
    redis.disconnect();
    const bare = sums.get("bare")!;
    return [...sums].flatMap(([name, sum]): Figure[] => {
      const atMost = name === "offer" ? 1.3 : 1.5;
      const ratio = (of: keyof typeof sum) => ({
        value: sum[of] / bare[of],
        unit: "x" as const,
        goal: { atMost },
      });
      return [
        { name: `${name}: a call`, value: sum.wall, unit: "us" },
        { name: `${name}: the client's processor time`, value: sum.own, unit: "us" },
        { name: `${name}: Redis's time for the script`, value: sum.redis, unit: "us" },
        ...(name === "bare"
          ? []
          : [
              { name: `${name}: a call, vs bare`, ...ratio("wall") },
              { name: `${name}: the client's processor time, vs bare`, ...ratio("own") },
            ]),
      ];
    });
  },
};

/** An hour, in milliseconds. */
const DELAY = 3_600_000;

/** Redisson's steps: the ZSET, the LIST, and the channel if the message is the new head. */
const BARE = `
redis.call("ZADD", KEYS[1], ARGV[1], ARGV[2])
redis.call("RPUSH", KEYS[2], ARGV[2])
if redis.call("ZRANGE", KEYS[1], 0, 0)[1] == ARGV[2] then redis.call("PUBLISH", ARGV[3], ARGV[1]) end
return 1
`;

const BARE_SHA = createHash("sha1").update(BARE).digest("hex");

/** A client that has `evalshaBuffer`, which its types omit. */
type Evaluating = Redis & { evalshaBuffer(sha: string, ...words: unknown[]): Promise<unknown> };

function offerBarely(redis: Redis, number: number): Promise<unknown> {
  const bytes = Buffer.from(makePayload(number));
  const member = Buffer.alloc(25 + bytes.length);
  member.writeUInt8(16, 0);
  // Cheaper than any real id.
  member.writeUInt32BE(number, 1);
  member.writeDoubleLE(bytes.length, 17);
  bytes.copy(member, 25);
  const deadline = Date.now() + DELAY;
  return (redis as Evaluating).evalshaBuffer(
    BARE_SHA,
    2,
    "bare-timeouts",
    "bare-order",
    deadline,
    member,
    "bare-channel",
  );
}
