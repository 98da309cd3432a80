import { expect, onTestFinished, test } from "vitest";
import { OfferError, RedisError } from "../../../src/index.ts";
import { eventually } from "../../helpers/eventually.ts";
import { FAULTS, workers, type Fault, type Scene } from "./faults.ts";
import { redisAt } from "./site-address.ts";
import { SiteTraffic } from "./site-traffic.ts";
import { Site } from "./site.ts";
import { Wire } from "./wire.ts";

/*
 * The faults of the ordinary queue's tests, one after another, on a plain and a reliable queue in partitions at once, where
 * each site is set up once. After each there is an account of every message, of what was reported, and of what is left
 * in Redis.
 */

/** How often all of them happen; `npm run soak` makes it more. */
const { PARTITIONS_ROUNDS } = process.env;
const ROUNDS = Number(PARTITIONS_ROUNDS ?? 1);

/** Milliseconds that a client may take to close: what its handlers have in hand is done in a few. */
const CLOSING = 3000;

const sites = { "two Sentinel set-ups": Site.ofSentinels, "a Cluster": Site.ofCluster };

test.each(Object.keys(sites) as (keyof typeof sites)[])(
  "on %s, plain and reliable: no fault loses a message, or has one twice or early",
  async (where) => {
    const [site, newWorker] = await Promise.all([sites[where](), workers()]);
    const { redis, end } = redisAt(site.address);
    onTestFinished(end);
    const wire = new Wire(site);
    const both = (["plain", "reliable"] as const).map(
      (kind) => new SiteTraffic(redis, kind, site.partitions),
    );
    const scene = { site, wire, both, newWorker };
    try {
      for (let round = 0; round < ROUNDS; round++) {
        for (const fault of FAULTS.filter(({ name }) => name.includes(process.env["ONLY"] ?? ""))) {
          await endure(fault, scene, where).catch((error: unknown) => {
            throw new Error(`"${fault.name}", round ${round}`, { cause: error });
          });
        }
      }
    } finally {
      for (const traffic of both) await traffic.stop();
    }
  },
  120_000 + ROUNDS * 60_000,
);

/** Lets it happen under traffic, and takes stock. */
async function endure(fault: Fault, scene: Scene, where: string): Promise<void> {
  const { both } = scene;
  const startedAt = performance.now();
  for (const traffic of both) {
    traffic.moreDelay = fault.moreDelay ?? 0;
    traffic.resume();
  }
  await Promise.all(both.map((traffic) => traffic.isFlowing()));
  const firsts = both.map(({ fortunes }) => fortunes.length);
  const happenedAt = performance.now();
  await fault.happen(scene);
  const overAt = performance.now();
  await Promise.all(both.map((traffic) => traffic.settle()));
  const settledAt = performance.now();
  for (const [i, traffic] of both.entries()) {
    const { wrongs } = traffic;
    const cost =
      fault.mayCost?.(wrongs[traffic.kind === "plain" ? "lost" : "attempts"], scene, traffic) ?? [];
    traffic.writeOff(cost);
    expect(traffic.wrongs).toEqual(NOTHING);
    const dead = await traffic.dead();
    expect(dead.found).toEqual(dead.wanted);
    const rejections = traffic.fortunes
      .slice(firsts[i])
      .flatMap(({ rejection }) => rejection ?? []);
    for (const error of rejections) expect(fault.replies).toContain((error as OfferError).reply);
    await eventually(() => expect(traffic.troubles).toEqual([]), { within: 10_000 });
    for (const error of traffic.errors) {
      expect(error).toBeInstanceOf(RedisError);
      expect([undefined, ...fault.replies]).toContain((error as RedisError).reply);
    }
    if (fault.isUnnoticed === true) expect(traffic.errors).toEqual([]);
    console.log(
      where,
      fault.name,
      traffic.kind,
      cost,
      traffic.errors.map(String),
      rejections.length,
    );
  }
  const a = performance.now();
  await Promise.all(both.map((traffic) => traffic.renew()));
  expect(Math.max(...both.flatMap(({ closings }) => closings))).toBeLessThan(CLOSING);
  console.log(
    where,
    fault.name,
    ...[
      happenedAt - startedAt,
      overAt - happenedAt,
      settledAt - overAt,
      a - settledAt,
      performance.now() - a,
    ].map(Math.round),
  );
}

const NOTHING = { lost: [], twice: [], early: [], against: [], attempts: [] };
