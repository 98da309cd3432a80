import { Delayline } from "../../../src/client/delayline.ts";
import { Tidier } from "../../../src/delayed/transfer/tidier.ts";
import { TransferTask } from "../../../src/delayed/transfer/transfer-task.ts";
import { Subscription } from "../../../src/queue/consuming/subscription.ts";
import { PauseWatch } from "../../../src/queue/pause-watch.ts";
import { ReadyList } from "../../../src/ready/ready-list.ts";
import { Heartbeat } from "../../../src/redis/heartbeat.ts";
import { Subscriber } from "../../../src/redis/subscriber.ts";
import { Planner } from "../../../src/schedules/planner.ts";
import { StoredSchedules } from "../../../src/schedules/stored-schedules.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";
import {
  CALL_TIMEOUT,
  CLOSE_TIMEOUT,
  closeWithin,
  newOpen,
  newTroubles,
  share,
  type Kind,
} from "./running.ts";

function newLine(url: string): Delayline {
  const line = new Delayline({
    redis: url,
    callTimeout: CALL_TIMEOUT,
    unreachableTimeout: CLOSE_TIMEOUT,
  });
  line.on("error", () => {});
  return line;
}

async function loop(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

/** Takes nothing until it is aborted. */
function takeNothing({ signal }: { signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")));
  });
}

/** Clients, and the parts that every queue has. */
export const clients: Readonly<Record<string, Kind>> = {
  "a client": {
    files: ["delayline.ts", "open-queues.ts", "iteration.ts", "consumer.ts"],
    make: (url) => {
      const line = newLine(url);
      const [plain, reliable] = [uniqueName(), uniqueName()];
      return {
        start: () => [
          line.getDelayedQueue(plain).offer("a", 60_000),
          line.getBlockingQueue(plain).take(),
          loop(line.getBlockingQueue(plain)),
          line.getReliableQueue(reliable).offer("a", 60_000),
          line.getReliableQueue(reliable).subscribe(() => {}),
          line.getReliableQueue(reliable).subscribeBatch(() => {}, { limit: 2 }),
          line.getReliableQueue(reliable).route({ orders: () => {} }),
          loop(line.getReliableQueue(reliable)),
        ],
        close: () => line.close(),
      };
    },
  },
  "a client of queues in partitions": {
    files: ["open-queue.ts"],
    make: (url) => {
      const line = newLine(url);
      const [plain, reliable, exclusive] = [uniqueName(), uniqueName(), uniqueName()];
      const partitions = 2;
      return {
        start: () => [
          line.getDelayedQueue(plain, { partitions }).offer("a", 60_000),
          line.getBlockingQueue(plain, { partitions }).take(),
          line.getReliableQueue(reliable, { partitions }).subscribe(() => {}),
          line.getReliableQueue(exclusive, { partitions, exclusive: true }).subscribe(() => {}),
          line.setPartitions(plain, 3),
        ],
        close: () => line.close(),
      };
    },
  },
  "a part of a queue": {
    files: ["part.ts", "queue.ts"],
    make: (url) => {
      const { shared, open } = newOpen(url);
      return {
        start: () => {
          open.startTransfer();
          return open.ready.takeAny(1, { timeout: Infinity }, []);
        },
        close: async () => {
          await closeWithin(shared, () => open.stopTaking());
          await open.close();
        },
      };
    },
  },
  "a transfer task": {
    files: ["transfer-task.ts", "sweep-rhythm.ts", "stand-by.ts"],
    make: (url) => {
      const { shared, open, queue } = newOpen(url);
      const task = new TransferTask(queue, open.pauses);
      return {
        start: () => task.onSubscribed(),
        close: () => closeWithin(shared, () => task.close()),
      };
    },
  },
  "a tidier": {
    files: ["tidier.ts"],
    make: (url) => {
      const { shared, queue } = newOpen(url);
      const tidier = new Tidier(queue);
      return {
        start: () => tidier.note(1000, { order: true, businessKeys: true, once: true }),
        close: () => closeWithin(shared, () => tidier.close()),
      };
    },
  },
  "a planner": {
    files: ["planner.ts"],
    make: (url) => {
      const { shared, queue } = newOpen(url);
      const scheduling = { codes: new Map() };
      const planner = new Planner(queue, new StoredSchedules(queue), scheduling);
      return {
        start: () => planner.note(false, 2),
        close: () => closeWithin(shared, () => planner.close()),
      };
    },
  },
  "a pause watch": {
    files: ["pause-watch.ts"],
    make: (url) => {
      const { queue } = newOpen(url);
      const watch = new PauseWatch(queue);
      return { start: () => watch.known(), close: () => watch.close() };
    },
  },
  "a ready list": {
    files: [
      "ready-list.ts",
      "taker.ts",
      "give-back.ts",
      "blocking-loop.ts",
      "open-sources.ts",
      "waiters.ts",
    ],
    make: (url) => {
      const { shared, open, queue } = newOpen(url);
      const list = new ReadyList(queue, open.pauses);
      return {
        start: () => list.takeAny(1, { timeout: Infinity }, []),
        close: async () => {
          open.pauses.close();
          await closeWithin(shared, () => list.close());
        },
      };
    },
  },
  "a subscription": {
    files: ["subscription.ts"],
    make: () => {
      const subscription = new Subscription({
        queue: "orders",
        take: takeNothing,
        takes: newTroubles().work(),
        handle: async () => {},
        awaits: async () => {},
        concurrency: 3,
        perLoop: 1,
        report: () => {},
      });
      return { start: () => {}, close: () => subscription.close() };
    },
  },
  "a subscriber": {
    files: ["subscriber.ts"],
    make: (url) => {
      const subscriber = new Subscriber(share(url).connections, newTroubles());
      return {
        start: () => subscriber.listen("channel", { onSubscribed: () => {}, onMessage: () => {} }),
        close: () => subscriber.close(),
      };
    },
  },
  "the connections": {
    files: ["connections.ts", "dedicated.ts", "troubles.ts", "server.ts"],
    make: (url) => {
      const { connections, troubles } = share(url);
      return {
        start: () => [connections.commands.ping(), connections.background.ping()],
        close: () => {
          troubles.close();
          connections.close();
        },
      };
    },
  },
  "a heartbeat": {
    files: ["heartbeat.ts"],
    make: (url) => {
      const redis = newRedis(url);
      const beats = { ask: () => redis.ping(), onSilence: () => {}, every: 2000 };
      const heartbeat = new Heartbeat(redis, beats);
      return { start: () => {}, close: () => heartbeat.close() };
    },
  },
};
