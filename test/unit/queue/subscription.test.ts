import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { ClosedError } from "../../../src/errors.ts";
import { Subscription, type Handling } from "../../../src/queue/consuming/subscription.ts";
import { Troubles } from "../../../src/redis/troubles.ts";

/** A take that waits for its reply. */
interface Asked {
  readonly max: number;
  readonly reply: (items: readonly (string | undefined)[]) => void;
}

/** A subscription whose takes and handlers the test ends. */
function newSubscription(concurrency: number, perLoop: number) {
  const asked: Asked[] = [];
  const ends = new Map<string | undefined, () => void>();
  const told: [name: string, items: readonly (string | undefined)[]][] = [];
  const handle = async (item: string | undefined) => {
    await new Promise<void>((resolve) => ends.set(item, resolve));
  };
  const handling: Handling<string | undefined> = {
    queue: "orders",
    takes: new Troubles({ report: () => {}, onRecovered: () => {} }).work(),
    take: ({ max, signal }) =>
      new Promise((resolve, reject) => {
        asked.push({ max, reply: resolve });
        signal.addEventListener("abort", () => reject(new ClosedError("orders")));
      }),
    handle,
    awaits: handle,
    interrupt: (items) => told.push(["interrupt", items]),
    abandon: (items) => told.push(["abandon", items]),
    concurrency,
    perLoop,
    report: () => {},
  };
  const end = async (...items: (string | undefined)[]) => {
    for (const item of items) ends.get(item)?.();
    await turn();
  };
  const reply = async (...items: (string | undefined)[]) => {
    asked.shift()?.reply(items);
    await turn();
  };
  return { subscription: new Subscription(handling), asked, told, end, reply };
}

const maxOf = (asked: readonly Asked[]) => asked.map(({ max }) => max);

test("one take serves all free handlers; those that end in one turn share the next", async () => {
  const { subscription, asked, end, reply } = newSubscription(3, 3);
  expect(maxOf(asked)).toEqual([3]);
  await reply("a");
  expect([subscription.running, maxOf(asked)]).toEqual([1, [2]]);
  await reply("b", "c");
  expect([subscription.running, maxOf(asked)]).toEqual([3, []]);
  await end("a", "c");
  expect([subscription.running, maxOf(asked)]).toEqual([1, [2]]);
  await reply();
  expect(maxOf(asked)).toEqual([2]);
  await end("b");
  void subscription.close();
  await subscription.ended;
});

test("each handler takes for itself", async () => {
  const { subscription, asked, end, reply } = newSubscription(2, 1);
  expect(maxOf(asked)).toEqual([1, 1]);
  await reply("a");
  expect(maxOf(asked)).toEqual([1]);
  await end("a");
  expect(maxOf(asked)).toEqual([1, 1]);
  await subscription.close();
});

test("a handler with an undefined payload runs, too: closing interrupts it, waits for it, and gives it up", async () => {
  const { subscription, told, end, reply } = newSubscription(2, 2);
  await reply(undefined, "b");
  await end("b");
  expect(subscription.running).toBe(1);
  let hasEnded = false;
  void subscription.ended.then(() => (hasEnded = true));
  await subscription.close({ handlerTimeout: 0 });
  expect(told).toEqual([
    ["interrupt", [undefined]],
    ["abandon", [undefined]],
  ]);
  expect(hasEnded).toBe(false);
  await end(undefined);
  expect([hasEnded, subscription.running]).toEqual([true, 0]);
});
