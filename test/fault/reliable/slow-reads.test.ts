import { expect, test } from "vitest";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/*
 * The reply to a read may take longer than two beats. The message is then in flight for a process that does not have it
 * yet, but it must not be treated as a stranger's.
 */

test("a message whose read takes many beats is delivered once, and is not reclaimed meanwhile", async () => {
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const name = uniqueName();
  const line = newLine({ redis: proxy.url });
  const queue = line.getReliableQueue<number>(name, { leaseTimeout: 300 });
  const taking = queue.take();
  await eventually(() => expect(roles.all("blocking").length).toBeGreaterThan(0));
  for (const connection of roles.all("blocking")) connection.delay.reply = 1500;
  await newLine({ transfer: false })
    .getReliableQueue<number>(name, { leaseTimeout: 300 })
    .offer(1, 0);
  const delivery = await taking;
  expect(delivery.attempt).toBe(1);
  expect(await delivery.ack()).toBe(true);
  for (const connection of roles.all("blocking")) connection.delay.reply = 0;
  expect(await queue.poll(300)).toBeUndefined();
});
