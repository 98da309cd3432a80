import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Child } from "../../../scripts/child/child.ts";
import type { ReliableQueue } from "../../../src/index.ts";
import { bundle } from "../../helpers/bundle.ts";
import { startChild } from "../../helpers/child.ts";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { missing, repeated } from "../../helpers/ledger.ts";
import { upTo } from "../../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { PartitionNames } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { CHANGE_WITHIN, ExclusiveScene, SOUND, within } from "./exclusive-scene.ts";

// The number of partitions changes while a reliable queue is, was or will be consumed exclusively.

const kinds = [
  { kind: "not strict", strict: false },
  { kind: "strict", strict: true },
];

describe.each(kinds)("two changes at once, $kind", ({ strict }) => {
  test("both end, at one of the two numbers", async () => {
    const scene = new ExclusiveScene({ strict, duration: 60, partitions: 3 });
    const [one, two] = [newLine(), newLine()];
    scene.join();
    scene.join();
    await scene.offer(2);
    for (let round = 0; round < 6; round++) {
      // One partition alone handles 16 messages a second.
      const end = scene.beginOffering(1000);
      // Some are ready, and handlers run.
      await scene.offer(3);
      const changes = Promise.all([
        scene.setPartitions(4, one),
        scene.setPartitions(round % 3 === 2 ? 1 : 2, two),
      ]);
      try {
        await within(30_000, `round ${round}: both changes end`, changes);
      } finally {
        await end();
      }
      expect([1, 2, 4]).toContain(await scene.stable());
    }
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  }, 150_000);
});

describe("a paused queue", () => {
  test("is resumed by another client during a change", async () => {
    const scene = new ExclusiveScene({ partitions: 2 });
    const [consumer, other] = [scene.join(), scene.join()];
    await scene.offer();
    await scene.allHandled();
    await scene.open(consumer).pause();
    await scene.offer(5);
    await scene.ready(5);
    const changing = scene.setPartitions(5);
    await scene.moving();
    await scene.open(other).resume();
    await scene.allHandled(CHANGE_WITHIN);
    await within(CHANGE_WITHIN, "the change", changing);
    for (const line of [consumer, other, scene.producer, newLine()]) {
      expect(await scene.open(line).isPaused()).toBe(false);
    }
    // Messages of the new partitions are handled as well.
    await scene.offer(2);
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test.each([
    { from: 2, to: 5 },
    { from: 5, to: 2 },
  ])("stays paused during a whole change from $from to $to", async ({ from, to }) => {
    const scene = new ExclusiveScene({ partitions: from });
    const consumer = scene.join();
    await scene.offer();
    await scene.allHandled();
    await scene.open(consumer).pause();
    const before = scene.handled.length;
    await scene.offer(5);
    await scene.ready(5);
    await scene.offer(1, 1000);
    const changing = scene.setPartitions(to);
    await scene.moving();
    await scene.offer(1, 1000);
    await within(CHANGE_WITHIN, "the change of a paused queue", changing);
    expect(await scene.stable()).toBe(to);
    expect(scene.handled.length).toBe(before);
    expect(await scene.open().isPaused()).toBe(true);
    await scene.open(newLine()).resume();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });
});

/** What happens in the middle of a change; the last line of each says what must be undone so that messages are handled. */
const events: Record<string, (scene: ExclusiveScene, consumer: TestLine) => Promise<void>> = {
  "pause and resume": async (scene) => {
    await scene.open(newLine()).pause();
    await scene.open(newLine()).resume();
  },
  "a pause of 500 ms": async (scene) => {
    await scene.open(newLine()).pause();
    await sleep(500);
    await scene.open(newLine()).resume();
  },
  "a join": async (scene) => {
    await Promise.resolve(scene.join());
  },
  "a leave": async (scene, consumer) => {
    await within(CHANGE_WITHIN, "close() during a change", consumer.close());
    scene.join();
  },
  "the only consumer leaves, and comes back": async (scene, consumer) => {
    await consumer.closeSubscriptions();
    await within(CHANGE_WITHIN, "close() during a change", consumer.close());
    await sleep(300);
    scene.join();
  },
};

/** After how many requests of the changing process the event happens. A change sends some 20 or more. */
const POINTS = [1, 3, 6, 10, 15, 21, 28];

describe.each(Object.keys(events))("%s in the middle of a change", (event) => {
  test.each([
    { from: 1, to: 4 },
    { from: 4, to: 2 },
  ])("at several points, from $from to $to", async ({ from, to }) => {
    const play = async (point: number): Promise<void> => {
      const scene = new ExclusiveScene({ partitions: from, keyCount: 6 });
      const consumer = scene.join();
      await scene.offer(2);
      await scene.offer(1, 1000);
      const proxy = await startProxy(redisUrl());
      const changer = newLine({ redis: proxy.url, transfer: false });
      // Its connections and what it knows are there before it begins.
      await changer.partitions(scene.name);
      await scene.allHandled();
      await scene.offer(3);
      await scene.offer(1, 1000);
      let count = 0;
      const reached = new Promise<void>((resolve) => {
        proxy.onRequest = (chunk) => {
          if (/eval/i.test(chunk.toString("latin1"))) count++;
          if (count !== point) return;
          // What it sends from here on arrives after the event.
          proxy.delay.request = 300;
          resolve();
        };
      });
      const changing = scene.setPartitions(to, changer);
      await Promise.race([reached, changing]);
      const happening = events[event]!(scene, consumer);
      await Promise.race([happening, sleep(400)]);
      proxy.onRequest = undefined;
      proxy.delay.request = 0;
      await happening;
      await within(CHANGE_WITHIN, `the change with ${event} at request ${point}`, changing);
      await scene.offer(2);
      await scene.allHandled().catch((error: unknown) => {
        throw new Error(`${event} at request ${point}: ${(error as Error).message}`);
      });
      expect(await scene.stable()).toBe(to);
      expect(await scene.open(newLine()).isPaused()).toBe(false);
      expect({ point, ...scene.faults }).toEqual({ point, ...SOUND });
    };
    await Promise.all(POINTS.map(play));
  });
});

describe.each(kinds)("a change while no exclusive consumer runs, $kind", ({ strict }) => {
  test.each([
    { from: 1, to: 4 },
    { from: 4, to: 1 },
    { from: 3, to: 5 },
  ])("from $from to $to, between two deployments", async ({ from, to }) => {
    const scene = new ExclusiveScene({ strict, duration: 30, partitions: from });
    const consumers = [scene.join(), scene.join()];
    await scene.offer(2);
    await scene.allHandled();
    await Promise.all(consumers.map((line) => line.close()));
    // Early ones are ready, later ones delayed.
    await scene.offer(4);
    await scene.ready(4);
    await scene.offer(2, 1500);
    const changing = scene.setPartitions(to);
    await scene.moving();
    await scene.offer(2, 1500);
    await within(CHANGE_WITHIN, "the change", changing);
    await scene.offer(2, 1500);
    for (let i = 0; i < 3; i++) scene.join();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test.each([
    { from: 1, to: 4 },
    { from: 4, to: 1 },
  ])("from $from to $to, and late messages are due at once", async ({ from, to }) => {
    const scene = new ExclusiveScene({ strict, duration: 30, partitions: from });
    const consumers = [scene.join(), scene.join()];
    await scene.offer();
    await scene.allHandled();
    await Promise.all(consumers.map((line) => line.close()));
    await scene.offer(4);
    await scene.ready(4);
    const changing = scene.setPartitions(to);
    await scene.offer(2);
    await within(CHANGE_WITHIN, "the change", changing);
    await scene.offer(2);
    await scene.ready(8);
    for (let i = 0; i < 3; i++) scene.join();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test.each([
    { from: 1, to: 4 },
    { from: 4, to: 1 },
  ])("from $from to $to, and consumers start in the middle of it", async ({ from, to }) => {
    const scene = new ExclusiveScene({ strict, duration: 30, partitions: from });
    const consumer = scene.join();
    await scene.offer();
    await scene.allHandled();
    await consumer.close();
    await scene.offer(4);
    await scene.ready(4);
    await scene.offer(2, 1500);
    const proxy = await startProxy(redisUrl());
    const changer = newLine({ redis: proxy.url, transfer: false });
    await changer.partitions(scene.name);
    // So the change takes a second or more.
    proxy.delay.request = 50;
    const changing = scene.setPartitions(to, changer);
    await scene.moving();
    scene.join();
    await scene.offer(2, 1500);
    await sleep(100);
    scene.join();
    scene.join();
    await within(CHANGE_WITHIN, "the change", changing);
    await scene.offer(2, 1500);
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test.each([
    { from: 1, to: 4 },
    { from: 4, to: 1 },
  ])("from $from to $to before the first exclusive consumer ever started", async ({ from, to }) => {
    const scene = new ExclusiveScene({ strict, duration: 30, partitions: from });
    await scene.offer(4);
    await scene.ready(4);
    await scene.offer(2, 1000);
    const proxy = await startProxy(redisUrl());
    const changer = newLine({ redis: proxy.url, transfer: false });
    await changer.partitions(scene.name);
    proxy.delay.request = 50;
    const changing = scene.setPartitions(to, changer);
    await scene.moving();
    for (let i = 0; i < 3; i++) scene.join();
    await scene.offer(2, 1000);
    await within(CHANGE_WITHIN, "the change", changing);
    await scene.offer(2, 1000);
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });
});

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

describe.each([
  { from: 1, to: 4, after: 1 },
  { from: 1, to: 4, after: 700 },
  { from: 4, to: 2, after: 300 },
])("the process that changes $from to $to dies after $after messages", ({ from, to, after }) => {
  test("exclusive consumers finish the change", async () => {
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
    await scene.offer(3, 500);
    await scene.offer(3);
    await changer.send(to);
    await changer.next((word) => word === "moved");
    await changer.exit;
    await scene.offer(3);
    await scene.offer(2, 1000);
    const [count] = await Promise.all([
      scene.stable(TAKEN_OVER_WITHIN),
      scene.allHandled(TAKEN_OVER_WITHIN),
    ]);
    expect(count).toBe(to);
    expect(await queue.size()).toBe(LATE_COUNT);
    expect(scene.faults).toEqual(SOUND);
  });

  test.each(["plain", "reliable"] as const)(
    "processes that only transfer a %s queue finish it, and messages become ready",
    async (kind) => {
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
    },
  );
});

describe.each(kinds)("the fence of a key only grows, $kind", ({ strict }) => {
  test("over hand-overs", async () => {
    const scene = new ExclusiveScene({ strict, duration: 10, partitions: 4 });
    const end = scene.beginOffering(300);
    let consumer = scene.join();
    for (let i = 0; i < 4; i++) {
      await goesOn(scene);
      const next = scene.join();
      await goesOn(scene);
      await consumer.close();
      consumer = next;
    }
    await end();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test("over changes of the number, up and down", async () => {
    const scene = new ExclusiveScene({ strict, duration: 10, partitions: 1 });
    const end = scene.beginOffering(300);
    scene.join();
    scene.join();
    for (const count of [4, 2, 5, 1, 3]) {
      await goesOn(scene);
      await within(2 * CHANGE_WITHIN, `the change to ${count}`, scene.setPartitions(count));
    }
    await goesOn(scene);
    await end();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test("over changes of the number between two deployments", async () => {
    const scene = new ExclusiveScene({ strict, partitions: 2 });
    for (const count of [5, 3, 1, 4]) {
      // Several hand-overs, so that the fences of the partitions differ.
      for (let i = 0; i < 3; i++) {
        const consumer = scene.join();
        await scene.offer();
        await scene.allHandled();
        await consumer.close();
      }
      await within(CHANGE_WITHIN, `the change to ${count}`, scene.setPartitions(count));
    }
    scene.join();
    await scene.offer();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });

  test("after the key of the holder was deleted while nobody held the partition", async () => {
    const scene = new ExclusiveScene({ strict, partitions: 2 });
    for (let i = 0; i < 5; i++) {
      const consumer = scene.join();
      await scene.offer();
      await scene.allHandled();
      await consumer.close();
      if (i < 2) continue;
      for (const partition of [0, 1]) await scene.redis.del(scene.keysOf(partition).holder);
    }
    await within(CHANGE_WITHIN, "the change", scene.setPartitions(3));
    for (const partition of [0, 1, 2]) await scene.redis.del(scene.keysOf(partition).holder);
    scene.join();
    await scene.offer();
    await scene.allHandled();
    expect(scene.faults).toEqual(SOUND);
  });
});

/** Waits until messages of every key are handled that were offered after this call. */
async function goesOn(scene: ExclusiveScene): Promise<void> {
  const before = new Set(scene.offered);
  await eventually(
    () => {
      const later = scene.handled.filter((id) => !before.has(id)).map((id) => id.split(":")[0]);
      return new Set(later).size === 8;
    },
    { what: "later messages of every key are handled" },
  );
}
