import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { replicated } from "../../helpers/replicated.ts";
import { SentinelGroup, type Member } from "../../helpers/sentinel-group.ts";
import { RELIABLE_MESSAGES } from "./crew.ts";
import { GroupTraffic } from "./group-traffic.ts";

/*
 * The master behind Sentinel is replaced while two groups work. Redis replicates asynchronously: a failover loses what
 * the new master had not received. If it loses a settlement, the message is handled again.
 */

/**
 * Milliseconds after the switch in which a reply of the old master may still arrive: a few on a quiet machine. A client
 * that stays with it gets its replies for 10 s.
 */
const SWITCHING = 1500;

/**
 * Milliseconds after the switch by which offers are back, and then deliveries: 2 s and 3 s on a quiet machine. A
 * message without a wake-up waits for a sweep, 24 s away or more.
 */
const BACK = 12_000;

/** Milliseconds until a message is due. */
const DELAY = 1000;

const causes: Record<string, (group: SentinelGroup, master: Member) => unknown> = {
  "a planned failover": (group) => group.failOver(),
  "kill -9": (_, master) => master.server.kill(),
};

for (const [cause, act] of Object.entries(causes)) {
  test(`${cause}: two groups go on, nothing gets stuck, and no more is lost than Redis loses`, async () => {
    const group = await SentinelGroup.start();
    const traffic = new GroupTraffic(() => ({ redis: group.options }), DELAY);
    await traffic.isFlowing();
    const { switched } = await group.nextSwitch();
    const master = await group.master();
    const replicatedAt = await replicated(master.server, 2);
    await act(group, master);
    const { at } = await switched;
    await eventually(
      () => performance.now() > at + 2 * SWITCHING && traffic.untilDone(at) < Infinity,
      {
        within: 30_000,
      },
    );
    const redis = new Redis(group.options);
    redis.on("error", () => {});
    onTestFinished(() => redis.disconnect());
    await traffic.end(redis);

    if (RELIABLE_MESSAGES !== undefined) console.log(traffic.countsSince(at));
    const { wanted, found } = await traffic.dead();
    expect(found).toEqual(wanted);
    expect(found.length).toBeGreaterThan(0);
    expect(traffic.untilAcknowledged(at)).toBeLessThan(BACK);
    expect(traffic.untilDone(at)).toBeLessThan(DELAY + BACK + 6000);
    const { lostAt } = traffic;
    expect(lostAt.filter((lost) => lost < replicatedAt)).toEqual([]);
    expect(lostAt.filter((lost) => lost > at + SWITCHING)).toEqual([]);
    for (const error of traffic.rejected.values()) expect(error.effect).toBe("unknown");
  }, 150_000);
}
