/**
 * Shows on this machine what Delayline promises.
 *
 *   npm run quickstart
 *
 * One process offers 10,000 orders that fall due within five seconds, and two others take them. Then every order is
 * accounted for: was it taken exactly once, and not before its deadline? How late was it?
 *
 * It uses the Redis at REDIS_URL, or finds and starts one. It exits with code 1 if a promise was broken.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Delayline } from "delayline";
import { startRedis } from "delayline/testing";
import { Redis } from "ioredis";
import { Child } from "./child/child.ts";
import { busyNote } from "../src/tools/cli/demo/busy.ts";
import { putServerOnPath } from "./server/on-path.ts";
import { Ledger, type OrderEvent } from "./quickstart/ledger.ts";

const PRODUCER = new URL("quickstart/producer.ts", import.meta.url);
const WORKER = new URL("quickstart/worker.ts", import.meta.url);

const ORDERS = 10_000;
const MAX_DELAY = 5_000;

/** Milliseconds after the last deadline after which an order that was not taken counts as lost. */
const PATIENCE = 10_000;

/** Prints a line this often, in milliseconds. */
const PROGRESS = 1_000;

/** Resolves with whether every promise was kept. */
async function main(): Promise<boolean> {
  if (!process.env["REDIS_URL"]) await putServerOnPath();
  await using redis = await startRedis();
  // A unique name, since REDIS_URL may point to a Redis that others use.
  const queue = `quickstart-${randomBytes(4).toString("hex")}`;
  console.log(`Redis: ${redis.description}.`);
  console.log(`Queue: ${queue}. One producer and two workers, each a process of its own.\n`);

  // The first Ctrl-C tidies up and ends; the second one ends at once.
  const interrupt = new AbortController();
  process.once("SIGINT", () => interrupt.abort());

  const ledger = new Ledger();
  const env = { REDIS_URL: redis.url, QUEUE: queue };
  const workers = ["worker 1", "worker 2"].map((name) => ({ name, child: start(WORKER, env) }));
  const children = workers.map(({ child }) => child);
  try {
    await Promise.all(children.map(isReady));
    const settings = { ...env, ORDERS: String(ORDERS), MAX_DELAY: String(MAX_DELAY) };
    const producer = start(PRODUCER, settings);
    children.push(producer);
    await isReady(producer);

    const reports = Promise.all([
      listen(producer, (offers) => ledger.offer(offers)),
      ...workers.map(({ name, child }) => listen(child, (takings) => ledger.take(name, takings))),
    ]);
    let failure: unknown;
    reports.catch((error: unknown) => (failure = error));

    const startedAt = performance.now();
    let elapsed = 0;
    while (ledger.takenCount < ORDERS && elapsed < MAX_DELAY + PATIENCE) {
      await sleep(PROGRESS, undefined, { signal: interrupt.signal }).catch(() => {
        throw new Error("interrupted");
      });
      elapsed = performance.now() - startedAt;
      console.log(`${seconds(elapsed)}   ${ledger.progress}`);
      if (failure !== undefined) throw failure;
    }

    // Stop the workers as a deployment does. A worker reports its orders before it ends, and once all have ended no
    // order can be taken any more.
    await Promise.all(workers.map(({ child }) => child.kill("SIGTERM")));
    await reports;
    const verdict = ledger.verdict(ORDERS, await countLeft(redis.url, queue));
    console.log(`\n${verdict.text}`);
    for (const note of busyNote()) console.log(`\n${note}`);
    return verdict.isKept;
  } finally {
    await Promise.all(children.map((child) => child.kill()));
    await removeKeys(redis.url, queue);
  }
}

/** What the programs send: that they are ready, and then the events of orders. */
type Report = "ready" | readonly OrderEvent[];

function start(program: URL, env: NodeJS.ProcessEnv): Child<Report> {
  return new Child<Report>(program, { env });
}

const isReady = (child: Child<Report>) => child.next((report) => report === "ready", PATIENCE);

/** Passes on the reports of a program until it ends. Rejects if the program fails. */
async function listen(
  child: Child<Report>,
  onEvents: (events: readonly OrderEvent[]) => void,
): Promise<void> {
  for await (const report of child.messages()) if (report !== "ready") onEvents(report);
}

/** Counts the messages that are still in Redis, delayed or ready. */
async function countLeft(url: string, queue: string): Promise<number> {
  await using line = new Delayline({ redis: url, transfer: false });
  const delayed = await line.getDelayedQueue(queue).size();
  return delayed + (await line.getBlockingQueue(queue).size());
}

/** Removes every key of the queue, even those that would expire later. */
async function removeKeys(url: string, queue: string): Promise<void> {
  const redis = new Redis(url);
  try {
    let cursor = "0";
    do {
      const [next, keys] = await redis.scan(cursor, "MATCH", `*${queue}*`, "COUNT", 1_000);
      if (keys.length > 0) await redis.unlink(keys);
      cursor = next;
    } while (cursor !== "0");
  } finally {
    redis.disconnect();
  }
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1).padStart(5)} s`;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
