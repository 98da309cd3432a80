import { expect, test } from "vitest";
import { moveSlotOf, startCluster } from "../../helpers/cluster.ts";
import { newLine } from "../../helpers/delayline.ts";
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
