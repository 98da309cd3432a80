import { onTestFinished } from "vitest";
import type { TransferReply } from "../../src/lua/delayed/transfer.ts";
import type { Elements } from "../../src/lua/family.ts";
import { PauseWatch } from "../../src/queue/pause-watch.ts";
import { Queue, type QueueLink } from "../../src/queue/queue.ts";
import type { Server } from "../../src/redis/server.ts";
import type { Sweeps } from "../../src/delayed/transfer/sweep-rhythm.ts";
import { TransferTask } from "../../src/delayed/transfer/transfer-task.ts";
import { redisUrl } from "./redis.ts";
import { newServer } from "./server.ts";

function report(error: Error): never {
  throw error;
}

/** Sweeps every 50 ms. */
export const OFTEN = { ordinary: 50, deaf: 50 };

/** Does not sweep during a test unless it is asked to. */
export const SELDOM = { ordinary: 3_600_000, deaf: 3_600_000 };

interface TransferTaskOptions {
  readonly url?: string;
  readonly elements?: Elements;
  /** Defaults to one of its own. */
  readonly server?: Server;
  readonly link?: QueueLink;
}

/**
 * Starts a transfer task by itself, with a sweep interval that a test can wait for. An error that it reports fails the
 * test. It ends with the test.
 */
export function startTransferTask(
  name: string,
  sweeps: Sweeps,
  options: TransferTaskOptions = {},
): TransferTask {
  const { url = redisUrl(), elements = "addresses", link } = options;
  const { server = newServer({ url, report }) } = options;
  const queue = new Queue(name, { elements, into: "list" }, server, link);
  const task = new TransferTask(queue, new PauseWatch(queue), undefined, sweeps);
  onTestFinished(async () => {
    await task.close();
    server.close();
  });
  return task;
}

/** The reply of a transfer that has moved nothing, at the instant 1000, but for `more`. */
export const transferReply = (more: Partial<TransferReply>): TransferReply => ({
  moved: 0,
  wentInto: undefined,
  dueSince: undefined,
  dropped: [],
  quarantined: 0,
  serverTime: 1000,
  next: Infinity,
  isOutrun: false,
  hasListed: false,
  claimedAt: undefined,
  untidy: undefined,
  isPaced: undefined,
  waited: undefined,
  scheduleKeys: undefined,
  isListed: undefined,
  isPaused: undefined,
  fact: undefined,
  isReliable: undefined,
  ...more,
});
