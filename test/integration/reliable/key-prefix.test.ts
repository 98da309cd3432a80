import { expect, test } from "vitest";
import { queueKeys } from "../../../src/queue/keys.ts";
import { collect } from "../../helpers/collect.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";

test.each(["shop:", "{shop}:"])(
  "everything works under the key prefix %s of a lent client",
  async (end) => {
    const name = uniqueName("prefixed");
    const prefix = `${uniqueName()}:${end}`;
    const redis = newRedis();
    const line = newLine({ redis: newRedis(redisUrl(), { keyPrefix: prefix }) });
    const queue = line.getReliableQueue(name, { codec: "string", maxAttempts: 2, retry: [10] });
    const audit = line.getReliableQueue(name, { codec: "string", group: "audit" });
    expect(await audit.poll()).toBeUndefined();

    await queue.offer("a", 10);
    const first = await queue.take();
    await first.nack();
    const second = await queue.take();
    expect(second).toMatchObject({ payload: "a", attempt: 2 });
    await second.nack({ reason: "again" });
    expect(await collect(queue.deadLetters)).toMatchObject([{ payload: "a", reason: "again" }]);
    expect(await queue.deadLetters.redrive("all", { delay: 60_000 })).toBe(1);
    expect(await queue.size()).toBe(1);
    await (await audit.take()).ack();

    // A program that does not know that the queue is reliable.
    await redis.rpush(`${prefix}${name}`, "b");
    for (const group of [queue, audit]) {
      const delivery = await group.take();
      expect(delivery.payload).toBe("b");
      expect(await delivery.ack()).toBe(true);
    }
    // The wait ends, and nothing stays behind.
    await expect(queue.take({ signal: AbortSignal.timeout(20) })).rejects.toThrow();
    const { stream, retries } = queueKeys(name);
    expect(await redis.xlen(`${prefix}${stream}`)).toBe(0);
    expect(await redis.zcard(`${prefix}${retries}`)).toBe(1);
    expect(await redis.exists(...Object.values(queueKeys(name)))).toBe(0);
    await line.close();
    await eventually(async () => {
      const groups = (await redis.xinfo("GROUPS", `${prefix}${stream}`)) as unknown[][];
      expect(groups.map((fields) => fields[fields.indexOf("consumers") + 1])).toEqual([0, 0]);
    });
  },
);
