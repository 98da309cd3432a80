import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { queueKeys } from "../../src/queue/keys.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, reconnectOnError } from "../helpers/redis.ts";
import { replicated } from "../helpers/replicated.ts";
import { SentinelGroup, type Member } from "../helpers/sentinel-group.ts";
import { Traffic } from "./traffic.ts";

/*
 * A master behind Sentinel is replaced: by an operator, or because it died, hangs, or is cut off.
 *
 * Redis replicates asynchronously, so a failover loses what the new master had not received. A client must not add to
 * that by staying with the old one, which accepts every offer for 10 s more.
 */

/**
 * Milliseconds after the switch in which a reply of the old master may still arrive: a few on a quiet machine. A client
 * that stays with the old master gets its replies for 10 s.
 */
const SWITCHING = 1500;

/**
 * Milliseconds after the switch by which offers and deliveries are back: less than 2 s on a quiet machine. A client
 * that misses the switch never hears again from a master that hangs or is cut off.
 */
const BACK = 15_000;

/** Milliseconds until a message is due: longer than the switch takes. */
const DELAY = 4000;

const causes: Record<string, (group: SentinelGroup, master: Member) => unknown> = {
  "a planned failover": (group) => group.failOver(),
  "kill -9": (_, master) => master.server.kill(),
  "a master that hangs": (_, master) => master.server.pause(),
  "a master cut off from its group": (_, master) => cutOff(master.inner),
  "a master cut off from its group and its clients": (_, master) => {
    cutOff(master.inner);
    cutOff(master.outer);
  },
};

function cutOff(network: Member["inner"]): void {
  network.refuse();
  network.swallow();
}

/** Fails over, and checks the history of the messages. */
async function failOver(cause: string, lend?: (options: SentinelGroup["options"]) => Redis) {
  const group = await SentinelGroup.start();
  const client = () => lend?.(group.options) ?? group.options;
  const traffic = new Traffic(() => ({ redis: client() }), DELAY);
  await traffic.isFlowing();
  const { switched } = await group.nextSwitch();
  const master = await group.master();
  const replicatedAt = await replicated(master.server, 2);
  await causes[cause]?.(group, master);
  const { at, to } = await switched;
  // Long enough to see what a client that stays with the old master loses.
  await eventually(() => performance.now() > at + 2 * SWITCHING);
  const redis = newRedis(to.server.url);
  const { timeouts } = queueKeys(traffic.name);
  const newest = async () => Number((await redis.zrange(timeouts, "-1", "-1", "WITHSCORES"))[1]);
  await eventually(async () => (await newest()) > Date.now() + DELAY - 1000, {
    what: `${cause}: offers go to the new master`,
  });
  await traffic.end();

  expect(traffic.untilAcknowledged(at), cause).toBeLessThan(BACK);
  expect(traffic.untilDelivered(at), cause).toBeLessThan(DELAY + BACK);
  const { lostAt } = traffic;
  expect(
    lostAt.filter((lost) => lost < replicatedAt),
    cause,
  ).toEqual([]);
  expect(
    lostAt.filter((lost) => lost > at + SWITCHING),
    cause,
  ).toEqual([]);
  if (lend !== undefined) return;
  for (const error of traffic.rejected.values()) expect(error.effect, cause).toBe("unknown");
}

// Some run side by side: each takes long and mostly waits.
test.each([
  ["a planned failover", "kill -9", "a master that hangs"],
  ["a master cut off from its group", "a master cut off from its group and its clients"],
])(
  "%s, ...: nothing acknowledged after the switch is lost, and everything is back soon",
  async (...some) => {
    await Promise.all(some.map((cause) => failOver(cause)));
  },
  150_000,
);

test("a lent client with a failover detector loses no more than one of ours", async () => {
  await failOver("a planned failover", (options) => {
    const redis = new Redis({ ...options, failoverDetector: true, reconnectOnError });
    redis.on("error", () => {});
    onTestFinished(() => redis.disconnect());
    return redis;
  });
}, 150_000);
