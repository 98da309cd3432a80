import { describe, test } from "vitest";
import { eventually } from "../../helpers/eventually.ts";
import { CHANGE_WITHIN, ExclusiveScene, within } from "./exclusive-scene.ts";

// Each handler sends its fence with what it writes, and a store refuses a fence that is smaller than an earlier one of
// the same key. It must refuse nobody who holds the partition.

const kinds = [
  { kind: "not strict", strict: false },
  { kind: "strict", strict: true },
];

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
    scene.judge();
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
    scene.judge();
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
    scene.judge();
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
    scene.judge();
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
