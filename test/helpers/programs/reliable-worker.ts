/**
 * A process that handles the messages of a reliable queue as its `MODE` says, and reports each of them:
 *
 * - `slow`: each handler takes a few milliseconds.
 * - `fail`: each handler fails.
 * - `poison`: a message "poison" kills the process; others take 20 ms.
 * - `block`: each handler blocks the event loop for `BLOCK` milliseconds, and then acknowledges by hand.
 * - `hold`: no handler ever ends.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { endWithParent, hangUp, tell } from "../../../scripts/child/parent.ts";
import { Delayline } from "../../../src/index.ts";
import { serverTime } from "../server-time.ts";

export type WorkerMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "error"; readonly message: string }
  | ({ readonly kind: "start" } & Told)
  | ({ readonly kind: "done" } & Told)
  | ({ readonly kind: "acked"; readonly isAcked: boolean; readonly isAborted: boolean } & Told);

interface Told {
  readonly id: string;
  readonly payload: string;
  readonly attempt: number;
  /** The server's clock (epoch ms) when the handler was called. */
  readonly at: number;
}

endWithParent();
const { REDIS = "", QUEUE = "", OPTIONS = "{}", SUBSCRIBE = "{}", MODE, BLOCK } = process.env;
const line = new Delayline({ redis: REDIS, codec: "string" });
line.on("error", ({ message }) => void tell({ kind: "error", message }).catch(() => {}));
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The test's own.
const queue = line.getReliableQueue<string>(QUEUE, JSON.parse(OPTIONS) as object);
const redis = new Redis(REDIS);

queue.subscribe(
  async (payload, delivery) => {
    const at = await serverTime(redis);
    const told = { id: delivery.id, payload, attempt: delivery.attempt, at };
    // Reported before the handler does anything else.
    await tell({ kind: "start", ...told });
    if (MODE === "hold") await new Promise(() => {});
    if (MODE === "fail") throw new Error("fails");
    if (MODE === "poison" && payload === "poison") process.kill(process.pid, "SIGKILL");
    if (MODE === "block") {
      const { signal } = delivery;
      const until = performance.now() + Number(BLOCK);
      while (performance.now() < until);
      // Let timers that became due meanwhile run first.
      await sleep(1);
      const isAcked = await delivery.ack();
      await tell({ kind: "acked", isAcked, isAborted: signal.aborted, ...told });
      return;
    }
    await sleep(MODE === "poison" ? 20 : 2);
    await tell({ kind: "done", ...told });
  },
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The test's own.
  { ...(JSON.parse(SUBSCRIBE) as object), onError: () => {} },
);
void queue.isPaused().then(() => tell({ kind: "ready" }));
process.once("SIGTERM", () => void end());

async function end(): Promise<void> {
  await line.close();
  redis.disconnect();
  hangUp();
}
