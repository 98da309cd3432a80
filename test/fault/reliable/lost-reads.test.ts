import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import { readPacked } from "../../../src/lua/reliable/read-packed.ts";
import type { ScriptRun } from "../../../src/lua/script.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { ascending, upTo } from "../../helpers/numbers.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy, type ProxyConnection } from "../../helpers/tcp-proxy.ts";

/*
 * While there is a backlog, a script reads many messages at once. Its reply may be lost, and with it all of them: they
 * are in flight for a process that does not have them.
 */

const COUNT = 600;
const LOSSES = 3;

/** Counts the runs of the script, and those that were cut off. */
function watchReads() {
  const reads = { done: 0, lost: 0 };
  const onScript = (message: unknown) => {
    const { script, isDone } = message as ScriptRun;
    if (script === readPacked.name) reads[isDone ? "done" : "lost"]++;
  };
  subscribe("delayline:script", onScript);
  onTestFinished(() => void unsubscribe("delayline:script", onScript));
  return reads;
}

async function newBacklog(name: string) {
  const queue = newLine().getReliableQueue<number>(name);
  await queue.offerMany(upTo(COUNT).map((payload) => ({ payload, delay: 0 })));
  const redis = newRedis();
  const { stream } = queueKeys(name);
  await eventually(async () => expect(await redis.xlen(stream)).toBe(COUNT));
  return { redis, stream };
}

test("replies to packed reads are lost: each message is handled once, at its first attempt", async () => {
  const name = uniqueName();
  const { redis, stream } = await newBacklog(name);
  const reads = watchReads();
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const isReader = (connection: ProxyConnection) => roles.all("blocking").includes(connection);
  let isAsked = false;
  let losses = 0;
  roles.onRequest = (chunk, connection) => {
    isAsked ||=
      losses < LOSSES && isReader(connection) && /evalsha/i.test(chunk.toString("latin1"));
  };
  proxy.onReply = (chunk, connection) => {
    if (!isAsked || !isReader(connection) || chunk.includes("NOSCRIPT")) return "forward";
    isAsked = false;
    losses++;
    return "cut";
  };
  const line = newLineThatMayFail({ redis: proxy.url, transfer: false });
  const queue = line.getReliableQueue<number>(name, { leaseTimeout: 60_000 });
  const handled: number[] = [];
  const attempts = new Set<number>();
  const subscription = queue.subscribe(
    (payload, { attempt }) => {
      handled.push(payload);
      attempts.add(attempt);
    },
    { concurrency: 100 },
  );
  await eventually(async () => expect(await redis.xlen(stream)).toBe(0));
  await subscription.close();
  expect(ascending(handled)).toEqual(upTo(COUNT));
  expect([...attempts]).toEqual([1]);
  expect(reads.lost).toBe(LOSSES);
  expect(reads.done).toBeGreaterThan(0);
});
