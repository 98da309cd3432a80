import { expect, test } from "vitest";
import { beginSlotMove, moveSlotOf, startCluster } from "../../helpers/cluster.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

/** Moves to other masters and back. */
const MOVES = 4;

test.each(["plain", "reliable"] as const)(
  "the slot of a %s queue moves: consumers go with it, and no event says that anything is wrong",
  async (kind) => {
    const { cluster, nodes } = await startCluster();
    // Whatever it reports fails the test.
    const line = newLine({ redis: cluster });
    const name = uniqueName();
    const queue =
      kind === "plain" ? line.getDelayedQueue<number>(name) : line.getReliableQueue<number>(name);
    const received: number[] = [];
    const source = kind === "plain" ? line.getBlockingQueue<number>(name) : queue;
    if (!("subscribe" in source)) throw new Error("no consumer");
    source.subscribe((payload: number) => void received.push(payload));
    await queue.offer(0, 0);
    await eventually(() => received.length === 1);
    for (let n = 1; n <= MOVES; n++) {
      await queue.offer(100, 60_000);
      await moveSlotOf(nodes, `{${name}}`);
      await queue.offer(n, 0);
      // Seconds, if the consumer heard of the move from nobody.
      await eventually(() => received.includes(n), { within: 1500 });
    }
    expect(received).toEqual(Array.from({ length: MOVES + 1 }, (_, n) => n));
  },
  90_000,
);

test("an offer that a half-moved slot refuses until its time is over is not stored", async () => {
  // With few redirections an attempt is short: several are made.
  const { cluster, nodes } = await startCluster({ maxRedirections: 2 });
  const line = newLineThatMayFail({ redis: cluster, transfer: false, callTimeout: 2500 });
  const name = uniqueName();
  const queue = line.getDelayedQueue<number>(name);
  await queue.offer(0, 60_000);
  const { moveKeys, end } = await beginSlotMove(nodes, `{${name}}`);
  await moveKeys(1);
  // Redis serves none of them: some of their keys are here, and some there.
  const refused = await Promise.allSettled([1, 2, 3].map((n) => queue.offer(n, 60_000)));
  while ((await moveKeys(1)) > 0);
  await end();

  const reasons = refused.map((one) => one.status === "rejected" && one.reason);
  expect(reasons).toEqual([1, 2, 3].map(() => expect.objectContaining(REFUSED)));
  await eventually(async () => (await queue.size()) === 1);
  await queue.offer(4, 60_000);
  expect(await queue.size()).toBe(2);
}, 90_000);

// Of the last redirection that ran out.
const REFUSED = {
  code: "OFFER",
  reply: expect.stringMatching(/^(TRYAGAIN|MOVED|ASK)$/) as string,
  effect: "none",
};
