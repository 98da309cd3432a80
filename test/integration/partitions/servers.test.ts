import { expect, test } from "vitest";
import { DecodeError, type Codec } from "../../../src/index.ts";
import { bucketOfKey } from "../../../src/queue/message/bucket.ts";
import { PartitionNames, tableOf } from "../../../src/partitions/ring/ring.ts";
import { queueKeys } from "../../../src/queue/keys.ts";
import { newLine, newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { startOwnServer } from "../../helpers/own-server.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

/** Writes text, and cannot read it. */
const broken: Codec<string> = {
  name: "broken",
  encode: (text) => Buffer.from(text),
  decode: () => {
    throw new Error("broken");
  },
};

test("partitions are spread over the servers of a list, and the living servers go on without the first", async () => {
  const server = await startOwnServer();
  const name = uniqueName("servers");
  const redis = [server.url, redisUrl()];
  const line = newLineThatMayFail({ redis });
  const queue = line.getDelayedQueue<string>(name, { partitions: 4, codec: broken });
  const ready = line.getBlockingQueue<string>(name);
  await queue.offer("first", 0);
  await expect(ready.take()).rejects.toThrow(DecodeError);
  const infos = await line.partitions(name);
  const [a, b] = redis.map((url) => new URL(url).host);
  expect(infos.map(({ node }) => node)).toEqual([a, b, a, b]);

  // Another list is refused.
  const other = newLine({ redis: redisUrl(), transfer: false });
  await newRedis().set(queueKeys(new PartitionNames(name).at(0)).partitions, "1:4:4:stable:2");
  await expect(other.getDelayedQueue(name, { partitions: 4 }).size()).rejects.toThrow(
    /2 server\(s\), but the option redis names 1/,
  );

  await server.kill();
  await eventually(() => line.errors.length > 0);
  const partitionKey = ["a", "b", "c", "d", "e", "f", "g", "h"].find(
    (key) => tableOf(4)[bucketOfKey(key)] === 1,
  ) as string;
  const { id } = await queue.offer("kept", 60_000, { partitionKey });
  expect(await queue.cancel(id)).toBe(true);
  // Messages that may go to any partition are offered to a living one.
  await Promise.all(Array.from({ length: 20 }, () => queue.offer("any", 60_000)));
  await queue.offer("unreadable", 0, { partitionKey });
  await expect(ready.take()).rejects.toThrow(DecodeError);
  const { quarantine } = queueKeys(new PartitionNames(name).at(1));
  expect(await newRedis().lrange(quarantine, 0, -1)).toEqual(["unreadable"]);
});

test("a reliable queue is consumed on the living server by a process that starts after the other has died", async () => {
  const dead = await startOwnServer();
  const name = uniqueName("servers");
  const redis = [redisUrl(), dead.url];
  const options = { partitions: 4 };
  await newLineThatMayFail({ redis }).getReliableQueue<number>(name, options).offer(0, 0);
  await dead.kill();
  const line = newLineThatMayFail({ redis });
  const queue = line.getReliableQueue<number>(name, { ...options, group: "late" });
  const taken: number[] = [];
  queue.subscribe((payload) => void taken.push(payload));
  const partitionKey = ["a", "b", "c", "d", "e", "f", "g", "h"].find(
    (key) => tableOf(4)[bucketOfKey(key)] === 2,
  ) as string;
  await queue.offer(1, 0, { partitionKey });
  await eventually(() => taken.includes(1));
});
