/**
 * A process that takes messages, and gives up waiting now and then. On "pause" it stops until it holds no message, on
 * "resume" it goes on, and on "stop" it hands over what it has taken.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { endWithParent, hangUp, tell } from "../../../scripts/child/parent.ts";
import { ClosedError, Delayline } from "../../../src/index.ts";
import { serverTime } from "../../helpers/server-time.ts";

/** A message that was taken, and the server's clock (epoch ms) afterwards. */
export type Taking = [payload: string, at: number];

endWithParent();
const { PORT, QUEUE = "" } = process.env;
const redis = new Redis(Number(PORT));
redis.on("error", () => {});
const takings: Taking[] = [];

async function takeWhileOpen(line: Delayline): Promise<void> {
  const queue = line.getBlockingQueue<string>(QUEUE, { codec: "string" });
  for (;;) {
    try {
      const signal = AbortSignal.timeout(Math.ceil(Math.random() * 50));
      const payloads = await queue.takeMany({ limit: 10, signal });
      // Read after the messages arrived: so one was early if this is before its deadline.
      const at = await serverTime(redis);
      for (const payload of payloads) takings.push([payload, at]);
    } catch (error) {
      if (error instanceof ClosedError) return;
      if (!(error instanceof Error && error.name === "TimeoutError")) throw error;
      // Nobody may wait now: a message may arrive for nobody, and goes back.
      await sleep(Math.random() * 5);
    }
  }
}

/** Begins to take. Returns a function that stops it. */
function open(): () => Promise<void> {
  const line = new Delayline({ redis: { port: Number(PORT) } });
  line.on("error", () => {});
  const takers = Array.from({ length: 3 }, () => takeWhileOpen(line));
  return async () => {
    await line.close();
    await Promise.all(takers);
  };
}

let close = open();
process.on("message", (word) => {
  void (async () => {
    if (word === "resume") {
      close = open();
      return;
    }
    await close();
    if (word === "pause") await tell("paused");
    else {
      redis.disconnect();
      await tell(takings);
      hangUp();
    }
  })();
});
await tell("ready");
