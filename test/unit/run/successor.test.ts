import { expect, test, vi } from "vitest";
import { Successor } from "../../../src/run/successor.ts";
import type { WaitOptions } from "../../../src/run/waiters.ts";

/** A place whose waits end when the test says so. */
class Place {
  readonly asked: (readonly [max: number, timeout: number])[] = [];
  #waiting: PromiseWithResolvers<readonly string[]>[] = [];

  readonly wait = (max: number, { timeout }: WaitOptions): Promise<readonly string[]> => {
    this.asked.push([max, timeout]);
    const waiting = {} as PromiseWithResolvers<readonly string[]>;
    waiting.promise = new Promise((resolve, reject) => Object.assign(waiting, { resolve, reject }));
    this.#waiting.push(waiting);
    return waiting.promise;
  };

  readonly dismiss = (reason: Error): void => {
    for (const { reject } of this.#waiting) reject(reason);
    this.#waiting = [];
  };

  bring(...messages: string[]): void {
    this.#waiting.shift()?.resolve(messages);
  }
}

test("a wait ends at its place while nobody leaves that", async () => {
  const [here, successor] = [new Place(), new Successor<string>()];
  const waiting = successor.after(here.wait, 2, { timeout: Infinity });
  here.bring("a", "b");
  expect(await waiting).toEqual(["a", "b"]);
  const failing = successor.after(here.wait, 1, { timeout: Infinity });
  here.dismiss(new Error("refused"));
  await expect(failing).rejects.toThrow("refused");
});

test("waits under way go on at the successor, each for the rest of its time", async () => {
  vi.useFakeTimers();
  try {
    const [here, there, successor] = [new Place(), new Place(), new Successor<string>()];
    const endless = successor.after(here.wait, 1, { timeout: Infinity });
    const limited = successor.after(here.wait, 3, { timeout: 10_000 });
    successor.leave(there.wait, here.dismiss);
    await vi.advanceTimersByTimeAsync(0);
    const [[one], [three, left]] = there.asked as [[number], [number, number]];
    expect([one, three]).toEqual([1, 3]);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(10_000);
    there.bring("a");
    there.bring("b");
    expect([await endless, await limited]).toEqual([["a"], ["b"]]);
  } finally {
    vi.useRealTimers();
  }
});

test("a wait that begins later stays where it is", async () => {
  const [here, there, successor] = [new Place(), new Place(), new Successor<string>()];
  successor.leave(there.wait, here.dismiss);
  const waiting = successor.after(here.wait, 1, { timeout: 0 });
  here.bring();
  expect(await waiting).toEqual([]);
  expect(there.asked).toEqual([]);
});
