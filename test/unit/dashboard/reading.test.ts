import { expect, test } from "vitest";
import { PagedReading, Readings } from "../../../src/tools/dashboard/readings/readings.ts";

async function* upTo(end: number, onEnd = () => {}): AsyncGenerator<number, void, void> {
  try {
    for (let i = 0; i < end; i++) yield i;
  } finally {
    onEnd();
  }
}

test("reads as far as the slice, and one item further", async () => {
  let read = 0;
  const counting = async function* () {
    for await (const i of upTo(100)) {
      read++;
      yield i;
    }
  };
  const reading = new PagedReading(counting());
  expect(await reading.slice(0, 3)).toEqual({ items: [0, 1, 2], next: 3 });
  expect(read).toBe(4);
  expect(await reading.slice(0, 3)).toEqual({ items: [0, 1, 2], next: 3 });
  expect(read).toBe(4);
});

test("the last slice has no next, whether it is full or not", async () => {
  const reading = new PagedReading(upTo(5));
  expect(await reading.slice(0, 5)).toEqual({ items: [0, 1, 2, 3, 4], next: undefined });
  expect(await reading.slice(3, 5)).toEqual({ items: [3, 4], next: undefined });
  expect(await new PagedReading(upTo(0)).slice(0, 5)).toEqual({ items: [], next: undefined });
});

test("keeps the last thousand items", async () => {
  const reading = new PagedReading(upTo(2000));
  let next: number | undefined = 0;
  while (next !== undefined && next < 1500) next = (await reading.slice(next, 100))?.next;
  expect(await reading.slice(0, 100)).toBeUndefined();
  expect(await reading.slice(600, 100)).toMatchObject({ next: 700 });
  expect(await reading.slice(5000, 100)).toBeUndefined();
});

test("concurrent slices each get their own items", async () => {
  const reading = new PagedReading(upTo(10));
  const slices = await Promise.all([reading.slice(0, 4), reading.slice(4, 4)]);
  expect(slices.map((slice) => slice?.items)).toEqual([
    [0, 1, 2, 3],
    [4, 5, 6, 7],
  ]);
});

test("a slow source gives a shorter slice, and loses nothing", async () => {
  let goOn: (() => void) | undefined;
  const waiting = async function* () {
    yield "first";
    await new Promise<void>((resolve) => (goOn = resolve));
    yield "second";
  };
  const reading = new PagedReading(waiting());
  expect(await reading.slice(0, 5)).toEqual({ items: ["first"], next: 1 });
  goOn?.();
  expect(await reading.slice(1, 5)).toEqual({ items: ["second"], next: undefined });
});

async function* failing(): AsyncGenerator<number, void, void> {
  yield 1;
  throw new Error("Redis is away");
}

test("a search that finds nothing stops when time is up, and ends on close", async () => {
  let steps = 0;
  const ended: boolean[] = [];
  const readings = new Readings();
  const read = async function* (signal: AbortSignal): AsyncGenerator<undefined, void, void> {
    signal.addEventListener("abort", () => ended.push(true));
    for (;;) {
      steps++;
      await new Promise(setImmediate);
      yield undefined;
    }
  };
  const page = await readings.page("x", { cursor: undefined, limit: 5 }, read);
  expect(page).toMatchObject({ items: [], next: expect.any(String) });
  const before = steps;
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  expect(steps - before).toBeLessThanOrEqual(1);
  readings.close();
  expect(ended).toEqual([true]);
});

test("a failed reading reports its error, and is closed", async () => {
  const readings = new Readings();
  const { next } = await readings.page("x", { cursor: undefined, limit: 0 }, failing);
  await expect(readings.page("x", { cursor: next, limit: 5 }, failing)).rejects.toThrow("away");
  await expect(readings.page("x", { cursor: next, limit: 5 }, failing)).rejects.toThrow(
    "has expired",
  );
});

test("the least recently used reading is closed, and its source ends", async () => {
  const readings = new Readings();
  const ended: number[] = [];
  const cursors: (string | undefined)[] = [];
  for (let i = 0; i < 34; i++) {
    const read = () => upTo(100, () => ended.push(i));
    cursors.push((await readings.page("x", { cursor: undefined, limit: 1 }, read)).next);
    // Keeps the first reading in use.
    const first = await readings.page("x", { cursor: cursors[0], limit: 1 }, read);
    expect(first.items).toEqual([1]);
  }
  const again = (i: number) => readings.page("x", { cursor: cursors[i], limit: 1 }, () => upTo(0));
  await expect(again(1)).rejects.toThrow("has expired");
  expect((await again(33)).items).toEqual([1]);
  readings.close();
  await expect(again(33)).rejects.toThrow("has expired");
  await new Promise(setImmediate);
  expect(ended.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 34 }, (_, i) => i));
});
