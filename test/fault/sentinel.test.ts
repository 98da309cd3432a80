import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../helpers/eventually.ts";
import { reconnectOnError } from "../helpers/redis.ts";
import { replicated } from "../helpers/replicated.ts";
import { SentinelGroup, type Member } from "../helpers/sentinel-group.ts";
import { Traffic } from "./traffic.ts";

/*
 * A master behind Sentinel is replaced: by an operator, or since it died, hangs, or is cut off.
 *
 * Redis replicates asynchronously, so a failover loses what the new master had not received. A client
 * must not add to that by going on with the old one, which for 10 s more accepts every offer.
 */

/**
 * Milliseconds after the switch until which an answer of the old master may still arrive: a few on a quiet machine.
 * Who stays with the old master gets its answers for 10 s.
 */
const SWITCHING = 1500;

/**
 * Milliseconds after the switch by which offers and deliveries are back. It is less than 2 s on a quiet machine; who
 * does not mind the switch hears nothing from a master that hangs or is cut off, for ever.
 */
const BACK = 8000;

/** Milliseconds until a message is due: longer than it takes to switch. */
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

for (const [cause, act] of Object.entries(causes)) {
  test(`${cause}: nothing acknowledged after the switch is lost, and all is back soon`, async () => {
    const group = await SentinelGroup.start();
    const traffic = new Traffic(() => ({ redis: group.options }), DELAY);
    await traffic.isFlowing();
    const { switched } = await group.nextSwitch();
    const master = await group.master();
    const replicatedAt = await replicated(master.server, 2);
    await act(group, master);
    const { at } = await switched;
    // Long enough to see a client that stays with the old master.
    await eventually(() => performance.now() > at + 2 * SWITCHING);
    await traffic.end();

    expect(traffic.untilAcknowledged(at)).toBeLessThan(BACK);
    expect(traffic.untilDelivered(at)).toBeLessThan(DELAY + BACK);
    const { lostAt } = traffic;
    expect(lostAt.filter((lost) => lost < replicatedAt)).toEqual([]);
    expect(lostAt.filter((lost) => lost > at + SWITCHING)).toEqual([]);
    for (const error of traffic.rejected.values()) expect(error.stored).toBe("unknown");
  }, 150_000);
}

test("a lent client with a failover detector loses no more than one of ours", async () => {
  const group = await SentinelGroup.start();
  const lend = () => {
    const redis = new Redis({ ...group.options, failoverDetector: true, reconnectOnError });
    redis.on("error", () => {});
    onTestFinished(() => redis.disconnect());
    return { redis };
  };
  const traffic = new Traffic(lend, DELAY);
  await traffic.isFlowing();
  const { switched } = await group.nextSwitch();
  await group.failOver();
  const { at } = await switched;
  await eventually(() => performance.now() > at + 2 * SWITCHING);
  await traffic.end();

  expect(traffic.untilAcknowledged(at)).toBeLessThan(BACK);
  expect(traffic.lostAt.filter((lost) => lost > at + SWITCHING)).toEqual([]);
}, 150_000);
