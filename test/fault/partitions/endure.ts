import { expect, onTestFinished } from "vitest";
import { RedisError } from "../../../src/index.ts";
import { eventually } from "../../helpers/eventually.ts";
import { FAULTS, type Fault, type Scene } from "./faults.ts";
import { newWorkers } from "./killing.ts";
import { redisAt } from "./site-address.ts";
import { SiteTraffic } from "./site-traffic.ts";
import type { Site } from "./site.ts";
import { Wire } from "./wire.ts";

/** How often all faults happen; `npm run soak` raises it. */
const { PARTITIONS_ROUNDS } = process.env;
const ROUNDS = Number(PARTITIONS_ROUNDS ?? 1);

/** Milliseconds for all of it, on a busy machine. */
export const LONGEST = 60_000 + ROUNDS * 120_000;

/** Milliseconds that a client may take to close. Its handlers finish their messages in a few. */
const CLOSING = 3000;

/**
 * Puts a plain and a reliable queue in partitions through every fault, one after another, at a site that is set up
 * once. After each fault it accounts for every message, every report, and everything left in Redis.
 */
export async function endureAll(start: () => Promise<Site>): Promise<void> {
  const [site, newWorker] = await Promise.all([start(), newWorkers()]);
  const { redis, end } = redisAt(site.address);
  onTestFinished(end);
  const wire = new Wire(site);
  const kinds = ["plain", "reliable"] as const;
  const both = kinds.map((kind) => new SiteTraffic(redis, kind, site.partitions));
  const scene: Scene = { site, wire, both, newWorker };
  try {
    for (let round = 1; round <= ROUNDS; round++) {
      for (const fault of FAULTS) {
        await endure(fault, scene).catch((cause: unknown) => {
          throw new Error(`${fault.name} (round ${round}): ${(cause as Error).message}`, { cause });
        });
      }
    }
  } finally {
    for (const traffic of both) await traffic.stop();
  }
}

/** Lets the fault happen under traffic, and takes stock. */
async function endure(fault: Fault, scene: Scene): Promise<void> {
  const { both } = scene;
  for (const traffic of both) {
    traffic.moreDelay = fault.moreDelay ?? 0;
    traffic.resume();
  }
  await Promise.all(both.map((traffic) => traffic.isFlowing()));
  const startedAt = performance.now();
  await fault.happen(scene);
  const duration = performance.now() - startedAt;
  await Promise.all(both.map((traffic) => traffic.settle()));
  for (const traffic of both) {
    const cost = fault.mayCost?.(traffic, scene) ?? [];
    traffic.writeOff(cost);
    const { kind, wrongs, fortunes } = traffic;
    const wrong = Object.values(wrongs).flatMap((some: readonly number[]) =>
      some.map((n) => fortunes[n]),
    );
    expect(wrongs, `${kind}: ${JSON.stringify(wrong)}`).toEqual(NOTHING);
    const { wanted, found } = await traffic.dead();
    expect(found).toEqual(wanted);
    const errors = [...traffic.errors, ...traffic.rejections];
    for (const error of errors) expect(error).toBeInstanceOf(RedisError);
    const replies = new Set(errors.flatMap((error) => (error as RedisError).reply ?? []));
    expect([...replies].filter((reply) => !fault.replies.includes(reply))).toEqual([]);
    if (fault.isUnnoticed === true) expect(traffic.errors).toEqual([]);
    await eventually(() => expect(traffic.troubles).toEqual([]), { within: 15_000 });
    if (PARTITIONS_ROUNDS !== undefined) {
      const [errorCount, rejectionCount] = [traffic.errors.length, traffic.rejections.length];
      console.log(fault.name, kind, {
        offered: fortunes.length,
        cost: cost.length,
        errorCount,
        rejectionCount,
        duration: Math.round(duration),
      });
    }
  }
  await Promise.all(both.map((traffic) => traffic.renew()));
  expect(Math.max(...both.flatMap(({ closings }) => closings))).toBeLessThan(CLOSING);
}

const NOTHING = { lost: [], twice: [], early: [], against: [], attempts: [] };
