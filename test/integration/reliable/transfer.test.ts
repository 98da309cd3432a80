import type { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { openGroup } from "../../../src/lua/reliable/groups.ts";
import { run } from "../../../src/lua/script.ts";
import { queueKeys, type QueueKeys } from "../../../src/queue/keys.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { message, retryFor, bytes } from "../../helpers/moves.ts";
import { newOpenQueue } from "../../helpers/open-queue.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

/** The payloads in the stream, oldest first. */
async function streamed(redis: Redis, { stream }: QueueKeys): Promise<string[]> {
  const entries = await redis.xrange(stream, "-", "+");
  return entries.map(([, fields]) => fields[fields.indexOf("p") + 1] ?? "");
}

async function makeReliable(redis: Redis, keys: QueueKeys): Promise<void> {
  await run(redis, openGroup, keys, { channel: keys.channel, group: "workers", start: "0" });
}

/** Writes a due retry to Redis. */
async function addRetry(redis: Redis, keys: QueueKeys, letter: string): Promise<void> {
  const { name, value } = retryFor(message(letter, 1000), "workers", 1);
  await redis.hset(keys.retrying, bytes(name), bytes(value));
  await redis.zadd(keys.retries, 1000, bytes(name));
}

describe.each(["none", "redisson"] as const)("interop: %s", (interop) => {
  const elements = interop === "none" ? "addresses" : "members";

  test("a process that opened only the plain queue fills the existing stream", async () => {
    const [redis, name] = [newRedis(), uniqueName()];
    const keys = queueKeys(name);
    const queue = newLine({ codec: "string" }).getDelayedQueue(name, { interop });
    await queue.offer("plain", 0);
    await eventually(async () => (await redis.llen(keys.ready)) === 1);

    await makeReliable(redis, keys);
    await queue.offer("reliable", 0);
    await queue.offer("a moment later", 20);
    await eventually(async () => (await streamed(redis, keys)).includes("a moment later"));
    // It knows now that the queue is reliable, and takes over the earlier messages of the LIST.
    await eventually(async () => (await redis.llen(keys.ready)) === 0);
    const payloads = await streamed(redis, keys);
    expect(payloads.toSorted()).toEqual(["a moment later", "plain", "reliable"]);
    expect(payloads.indexOf("reliable")).toBeLessThan(payloads.indexOf("a moment later"));
    expect(await redis.exists(keys.timeouts)).toBe(0);
  });

  test("a queue becomes reliable while its task runs", async () => {
    const [redis, name] = [newRedis(), uniqueName()];
    const keys = queueKeys(name);
    const { open } = newOpenQueue(name, { elements });
    open.startTransfer();
    const queue = newLine({ codec: "string", transfer: false }).getDelayedQueue(name, { interop });
    await queue.offer("before", 0);
    await eventually(async () => (await redis.llen(keys.ready)) === 1);
    // Nothing is published.
    await addRetry(redis, keys, "r");

    open.openReliable();
    await eventually(async () => (await streamed(redis, keys)).length === 2);
    expect((await streamed(redis, keys)).toSorted()).toEqual(["before", "r"]);
    await queue.offer("after", 20);
    await eventually(async () => (await streamed(redis, keys)).at(-1) === "after");
    expect(await redis.exists(keys.ready, keys.retries, keys.retrying, keys.timeouts)).toBe(0);
  });
});

test("the timer is set for the earlier of a message and a retry", async () => {
  const [redis, name] = [newRedis(), uniqueName()];
  const keys = queueKeys(name);
  const [seconds] = await redis.time();
  const due = Number(seconds) * 1000 + 2000;
  const { name: retry, value } = retryFor(message("r", due), "workers", 1);
  await redis.hset(keys.retrying, bytes(retry), bytes(value));
  await redis.zadd(keys.retries, due, bytes(retry));
  await newLine({ codec: "string", transfer: false }).getDelayedQueue(name).offer("far", 60_000);

  const { open } = newOpenQueue(name);
  open.openReliable();
  open.startTransfer();
  await eventually(async () => (await streamed(redis, keys)).length === 1);
  const entryId = (await redis.xrange(keys.stream, "-", "+"))[0]?.[0];
  const lateness = Number(entryId?.split("-")[0]) - due;
  expect(lateness).toBeGreaterThanOrEqual(0);
  // The far message is due a minute later; a sweep comes after 24 s at the earliest.
  expect(lateness).toBeLessThan(15_000);
});
