import { expect, test } from "vitest";
import { Fuse, type Sign, type Witness } from "../../../src/redis/fuse.ts";

const SIGN: Sign = { queue: "orders", knownAt: 2, foundAt: 1 };

/** A fuse with a queue that Redis shows an older copy of, once. */
function newFuse({ failures = 0, isWhole = true } = {}) {
  const told: (readonly Sign[])[] = [];
  const looks: number[] = [];
  let pauses = 0;
  let accepted = 0;
  const fuse = new Fuse(
    {
      onFallBack: (signs) => told.push(signs),
      beforeGoingOn: async () => {
        pauses += 1;
        if (pauses <= failures) throw new Error("no");
      },
    },
    { isWhole },
  );
  const witness: Witness = {
    isEmpty: false,
    examine: async (heardAt) => {
      looks.push(heardAt);
      return { sign: accepted === 0 ? SIGN : undefined, accept: () => void accepted++ };
    },
  };
  fuse.add(witness);
  return { fuse, witness, told, looks, pauses: () => pauses };
}

test("nothing is asked before the connection was lost, and once after it", async () => {
  const { fuse, told, looks, pauses } = newFuse();
  expect(fuse.passed()).toBeUndefined();
  fuse.lost(10);
  // An attempt to connect that fails loses it again.
  fuse.lost(20);
  await Promise.all([fuse.passed(), fuse.passed()]);
  expect(fuse.passed()).toBeUndefined();
  expect({ told, looks, pauses: pauses() }).toEqual({ told: [[SIGN]], looks: [10], pauses: 1 });
  fuse.lost(30);
  await fuse.passed();
  expect({ told: told.length, looks }).toEqual({ told: 1, looks: [10, 30] });
});

test("nobody passes before what has to follow was done, and it is told once", async () => {
  const { fuse, told, pauses } = newFuse({ failures: 2 });
  fuse.lost(10);
  await expect(fuse.passed()).rejects.toThrow("no");
  await expect(fuse.passed()).rejects.toThrow("no");
  await fuse.passed();
  expect(fuse.passed()).toBeUndefined();
  expect({ told: told.length, pauses: pauses() }).toEqual({ told: 1, pauses: 3 });
});

test("a queue that was closed, or that nothing is known of, is not asked", async () => {
  const { fuse, witness, looks } = newFuse();
  fuse.add({ isEmpty: true, examine: () => Promise.reject(new Error("asked")) });
  fuse.remove(witness);
  fuse.lost(10);
  await fuse.passed();
  expect(looks).toEqual([]);
});

test("on a Cluster a queue does not wait for another one, whose node is down", async () => {
  const { fuse, witness, told } = newFuse({ isWhole: false });
  const down: Witness = { isEmpty: false, examine: () => new Promise(() => {}) };
  fuse.add(down);
  fuse.lost(10);
  expect(fuse.passed(down)).toBeDefined();
  await fuse.passed(witness);
  expect(told).toEqual([[SIGN]]);
  expect(fuse.passed(witness)).toBeUndefined();
  expect(fuse.passed()).toBeDefined();
});
