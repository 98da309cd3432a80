import { expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import type { ReliableQueue } from "../../../src/index.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { FIRST_PAGE, pullOutPage } from "../../../src/lua/partitions/pull-out.ts";
import { run } from "../../../src/lua/script.ts";
import { formatMember } from "../../../src/partitions/parts/member.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { atOnce } from "../../helpers/at-once.ts";
import { bundle } from "../../helpers/bundle.ts";
import { startChild } from "../../helpers/child.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { missing, repeated } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { allTo } from "../../helpers/partitions.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { offerAsRedisson } from "../../helpers/redisson.ts";
import { serverTime } from "../../helpers/server-time.ts";
import { ExclusiveScene } from "./exclusive-scene.ts";

// The process that changes the number of partitions is killed. Others that have the queue open finish the change.

/** Milliseconds in which other processes finish the change of a dead one. */
const TAKEN_OVER_WITHIN = 20_000;

const HOUR = 3_600_000;

/** Delayed messages, so that a change takes a while. */
const LATE_COUNT = 1500;

/** Starts the process that is killed after it has migrated so many messages. */
async function startChanger(name: string, after: number): Promise<Child> {
  const program = await bundle(new URL("../workers/partitions-changer.ts", import.meta.url));
  const child = startChild(program, {
    env: { REDIS: redisUrl(), QUEUE: name, AFTER: String(after) },
  });
  await child.next((word) => word === "loaded");
  return child;
}

/** The process that changes the number dies after so many messages. */
const deaths = [
  { from: 1, to: 4, after: 1 },
  { from: 1, to: 4, after: 700 },
  { from: 4, to: 2, after: 300 },
];

test("exclusive consumers finish a change whose process has died", async () => {
  await atOnce(deaths, async ({ from, to, after }) => {
    const scene = new ExclusiveScene({ partitions: from, duration: 30 });
    const queue = scene.open();
    await queue.offerMany(
      upTo(LATE_COUNT).map((n) => ({ payload: { key: `late ${n}`, number: 0 }, delay: HOUR })),
    );
    scene.join();
    scene.join();
    await scene.offer();
    await scene.allHandled();
    const changer = await startChanger(scene.name, after);
    // A message is never due before an earlier one of its key.
    await scene.offer(3);
    await scene.offer(3, 500);
    await changer.send(to);
    await changer.next((word) => word === "moved");
    await changer.exit;
    await scene.offer(3, 500);
    await scene.offer(2, 1000);
    const [count] = await Promise.all([
      scene.stable(TAKEN_OVER_WITHIN),
      scene.allHandled(TAKEN_OVER_WITHIN),
    ]);
    expect(count).toBe(to);
    expect(await queue.size()).toBe(LATE_COUNT);
    scene.judge();
  });
});

test.each(["plain", "reliable"] as const)(
  "processes that only transfer a %s queue finish it, and messages become ready",
  async (kind) => {
    await atOnce(deaths, async ({ from, to, after }) => {
      const name = uniqueName();
      const redis = newRedis();
      const line = newLine();
      const queue =
        kind === "plain"
          ? line.getDelayedQueue<string>(name, { partitions: from })
          : line.getReliableQueue<string>(name, { partitions: from });
      const other = newLine();
      await (kind === "plain"
        ? other.getDelayedQueue(name, { partitions: from }).size()
        : other.getReliableQueue(name, { partitions: from }).size());
      const late = upTo(LATE_COUNT).map((n) => `late ${n}`);
      await queue.offerMany(late.map((payload) => ({ payload, delay: HOUR })));
      const changer = await startChanger(name, after);
      const soon = upTo(14).map((n) => `soon ${n}`);
      await queue.offerMany(soon.map((payload, n) => ({ payload, delay: 300 * n })));
      await changer.send(to);
      await changer.next((word) => word === "moved");
      await changer.exit;
      const { partitions } = queueKeys(new PartitionNames(name).at(0));
      await eventually(
        async () => {
          const all = await line.partitions(name);
          expect(all).toHaveLength(to);
          expect(await redis.get(partitions)).toContain(":stable");
          expect(all.reduce((sum, { ready }) => sum + ready, 0)).toBe(soon.length);
          expect(all.reduce((sum, { delayed }) => sum + delayed, 0)).toBe(late.length);
        },
        { within: TAKEN_OVER_WITHIN, what: "the change is finished, and all is ready" },
      );
      const payloads: string[] = [];
      const isThere = () => payloads.length >= soon.length;
      if (kind === "plain") {
        line
          .getBlockingQueue<string>(name, { partitions: from })
          .subscribe((payload) => void payloads.push(payload));
      } else {
        (queue as ReliableQueue<string>).subscribe((payload) => void payloads.push(payload));
      }
      await eventually(isThere);
      expect({ lost: missing(soon, payloads), twice: repeated(payloads) }).toEqual({
        lost: [],
        twice: [],
      });
    });
  },
);

test("a batch that a process left open in the ordinary queue arrives", async () => {
  const name = uniqueName("abandoned");
  const redis = newRedis();
  const queue = newLine().getDelayedQueue<string>(name, { partitions: 2 });
  await queue.offer("there", HOUR);
  const [ordinary, first] = [queueKeys(name), queueKeys(new PartitionNames(name).at(0))];
  // It offered there, and learnt of the partitions only then.
  await offerAsRedisson(redis, name, JSON.stringify("left"), HOUR);
  const args = { own: -1, buckets: allTo(1), cursor: FIRST_PAGE, limit: 100, maxBytes: 100_000 };
  expect((await run(redis, pullOutPage, ordinary, args)).rows).toHaveLength(1);
  const dead = formatMember({ name: "dead", roles: { isChanging: true } });
  await redis.zadd(first.members, (await serverTime(redis)) - 3000, dead);
  await eventually(async () => (await queue.size()) === 2);
  expect(await redis.hexists(ordinary.journal, "rows")).toBe(0);
});

test("a batch that a process left open at the very end of its change arrives", async () => {
  const name = uniqueName("abandoned");
  const redis = newRedis();
  const [from, to] = [0, 1].map((partition) => queueKeys(new PartitionNames(name).at(partition)));
  const line = newLine();
  const queue = line.getDelayedQueue<number>(name, { partitions: 2 });
  // Both partitions get some.
  await queue.offerMany(upTo(20).map((n) => ({ payload: n, delay: HOUR, partitionKey: `${n}` })));
  // It has taken messages out of partition 0, and the fact is stable.
  const args = { own: -1, buckets: allTo(1), cursor: FIRST_PAGE, limit: 100, maxBytes: 100_000 };
  const { rows } = await run(redis, pullOutPage, from as QueueKeys, args);
  expect(rows.length).toBeGreaterThan(0);
  expect(await queue.size()).toBe(20 - rows.length);
  const { members } = from as QueueKeys;
  const dead = formatMember({ name: "dead", roles: { isChanging: true } });
  await redis.zadd(members, (await serverTime(redis)) - 3000, dead);
  await eventually(async () => (await redis.zcard((to as QueueKeys).timeouts)) >= rows.length);
  expect(await queue.size()).toBe(20);
});
