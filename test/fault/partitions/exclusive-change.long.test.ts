import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { atOnce } from "../../helpers/at-once.ts";
import { newLine, type TestLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { upTo } from "../../helpers/numbers.ts";
import { redisUrl } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";
import { CHANGE_WITHIN, ExclusiveScene, within } from "./exclusive-scene.ts";

// The number of partitions changes while a reliable queue is, was or will be consumed exclusively.

const kinds = [
  { kind: "not strict", strict: false },
  { kind: "strict", strict: true },
];

describe.each(kinds)("two changes at once, $kind", ({ strict }) => {
  const play = async (round: number): Promise<void> => {
    const [partitions, ...counts] = [
      [3, 4, 2],
      [1, 4, 2],
      [4, 2, 4],
      [6, 2, 4],
    ][round % 4] as [number, number, number];
    const scene = new ExclusiveScene({ strict, duration: 60, partitions });
    const [one, two] = [newLine(), newLine()];
    scene.join();
    scene.join();
    await scene.offer();
    await eventually(() => scene.handled.length > 0);
    for (let again = 0; again < 3; again++) {
      // All partitions are busy throughout: whoever looks between the two changes, or after both, sees ready messages.
      await scene.offer(3);
      const end = scene.beginOffering(110);
      const changes = Promise.all([
        scene.setPartitions(counts[0], one),
        sleep(10 * round * again).then(() => scene.setPartitions(counts[1], two)),
      ]);
      try {
        await within(30_000, "both changes", changes);
      } catch (error) {
        const { message } = error as Error;
        throw new Error(`${message}, the fact is ${await scene.fact()}`, { cause: error });
      } finally {
        await end();
      }
      await scene.allHandled(60_000);
      expect(counts).toContain(await scene.stable());
    }
    scene.judge();
  };

  test("both end, at one of the two numbers", async () => {
    await atOnce(upTo(4), play);
  }, 150_000);
});

describe("a paused queue", () => {
  test("is resumed by another client during a change", async () => {
    const scene = new ExclusiveScene({ partitions: 2 });
    await scene.offer(5);
    await scene.ready(5);
    await scene.open().pause();
    const [consumer, other] = [scene.join(), scene.join()];
    await scene.held();
    await scene.offer(1);
    const changing = scene.setPartitions(5);
    await scene.moving(changing);
    await scene.open(other).resume();
    await scene.allHandled(CHANGE_WITHIN);
    await within(CHANGE_WITHIN, "the change", changing);
    for (const line of [consumer, other, scene.producer, newLine()]) {
      expect(await scene.open(line).isPaused()).toBe(false);
    }
    // Messages of the new partitions are handled as well.
    await scene.offer(2);
    await scene.allHandled();
    scene.judge();
  });

  test.each([
    { from: 2, to: 5 },
    { from: 5, to: 2 },
  ])("stays paused during a whole change from $from to $to", async ({ from, to }) => {
    const scene = new ExclusiveScene({ partitions: from });
    await scene.offer(5);
    await scene.ready(5);
    await scene.open().pause();
    scene.join();
    await scene.held();
    await scene.offer(1, 1000);
    const changing = scene.setPartitions(to);
    await scene.moving(changing);
    await scene.offer(1, 1000);
    await within(CHANGE_WITHIN, "the change of a paused queue", changing);
    expect(await scene.stable()).toBe(to);
    expect(scene.handled).toEqual([]);
    expect(await scene.open().isPaused()).toBe(true);
    await scene.open(newLine()).resume();
    await scene.allHandled();
    scene.judge();
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
      // A message is never due before an earlier one of its key.
      await scene.offer(2, 1000);
      await scene.allHandled().catch((error: unknown) => {
        throw new Error(`${event} at request ${point}: ${(error as Error).message}`);
      });
      expect(await scene.stable()).toBe(to);
      expect(await scene.open(newLine()).isPaused()).toBe(false);
      scene.judge();
    };
    await atOnce(POINTS, play);
  });
});

interface Change {
  readonly from: number;
  readonly to: number;
}

const bothKindsOf = (changes: readonly Change[]) =>
  changes.flatMap((change) => kinds.map(({ strict }) => ({ ...change, strict })));

/** A queue whose consumers have left, after each key had `handledCount` messages; now four of each key are ready. */
async function leftWithReady(
  strict: boolean,
  partitions: number,
  consumerCount: number,
  handledCount = 1,
): Promise<ExclusiveScene> {
  const scene = new ExclusiveScene({ strict, duration: 30, partitions });
  const consumers = upTo(consumerCount).map(() => scene.join());
  await scene.offer(handledCount);
  await scene.allHandled();
  await Promise.all(consumers.map((line) => line.close()));
  await scene.offer(4);
  await scene.ready(4);
  return scene;
}

/** A client behind a slow network, whose change takes a second or more. */
async function slowChanger({ name }: ExclusiveScene): Promise<TestLine> {
  const proxy = await startProxy(redisUrl());
  const changer = newLine({ redis: proxy.url, transfer: false });
  await changer.partitions(name);
  proxy.delay.request = 50;
  return changer;
}

describe("a change while no exclusive consumer runs, strict or not,", () => {
  test("between two deployments", async () => {
    const cases = bothKindsOf([
      { from: 1, to: 4 },
      { from: 4, to: 1 },
      { from: 3, to: 5 },
    ]);
    await atOnce(cases, async ({ strict, from, to }) => {
      const scene = await leftWithReady(strict, from, 2, 2);
      // Early ones are ready, later ones delayed.
      await scene.offer(2, 1500);
      const changing = scene.setPartitions(to);
      await scene.moving(changing);
      await scene.offer(2, 1500);
      await within(CHANGE_WITHIN, "the change", changing);
      await scene.offer(2, 1500);
      for (let i = 0; i < 3; i++) scene.join();
      await scene.allHandled();
      scene.judge();
    });
  });

  test("and late messages are due at once", async () => {
    const cases = bothKindsOf([
      { from: 1, to: 4 },
      { from: 4, to: 1 },
    ]);
    await atOnce(cases, async ({ strict, from, to }) => {
      const scene = await leftWithReady(strict, from, 2);
      const changing = scene.setPartitions(to);
      await scene.offer(2);
      await within(CHANGE_WITHIN, "the change", changing);
      await scene.offer(2);
      await scene.ready(8);
      for (let i = 0; i < 3; i++) scene.join();
      await scene.allHandled();
      scene.judge();
    });
  });

  test("and consumers start in the middle of it", async () => {
    const cases = bothKindsOf([
      { from: 1, to: 4 },
      { from: 4, to: 1 },
    ]);
    await atOnce(cases, async ({ strict, from, to }) => {
      const scene = await leftWithReady(strict, from, 1);
      await scene.offer(2, 1500);
      const changing = scene.setPartitions(to, await slowChanger(scene));
      await scene.moving(changing);
      scene.join();
      await scene.offer(2, 1500);
      await scene.heldInPart();
      scene.join();
      scene.join();
      await within(CHANGE_WITHIN, "the change", changing);
      await scene.offer(2, 1500);
      await scene.allHandled();
      scene.judge();
    });
  });

  test("before the first exclusive consumer ever started", async () => {
    const cases = bothKindsOf([
      { from: 1, to: 4 },
      { from: 4, to: 1 },
    ]);
    await atOnce(cases, async ({ strict, from, to }) => {
      const scene = new ExclusiveScene({ strict, duration: 30, partitions: from });
      await scene.offer(4);
      await scene.ready(4);
      await scene.offer(2, 1000);
      const changing = scene.setPartitions(to, await slowChanger(scene));
      await scene.moving(changing);
      for (let i = 0; i < 3; i++) scene.join();
      await scene.offer(2, 1000);
      await within(CHANGE_WITHIN, "the change", changing);
      await scene.offer(2, 1000);
      await scene.allHandled();
      scene.judge();
    });
  });
});
