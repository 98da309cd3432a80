import { expect, onTestFinished, test } from "vitest";
import type { Delivery } from "../../../src/index.ts";
import { newLine } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import { Gate } from "../../helpers/gate.ts";
import { redisUrl, uniqueName } from "../../helpers/redis.ts";
import { Roles } from "../../helpers/roles.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

const LEASE = 900;

test("a beat renews the leases from when it was sent: after a reply that took a lease, they are over", async () => {
  const proxy = await startProxy(redisUrl());
  const roles = new Roles(proxy);
  const line = newLine({ redis: proxy.url });
  const queue = line.getReliableQueue<number>(uniqueName(), { leaseTimeout: LEASE });
  const [begun, end] = [new Gate(), new Gate()];
  onTestFinished(() => end.open());
  let running: Delivery<number> | undefined;
  queue.subscribe(async (_n, delivery) => {
    running = delivery;
    begun.open();
    await end.opened;
  });
  await queue.offer(1, 0);
  await begun.opened;
  for (const connection of roles.all("background")) connection.delay.reply = LEASE + 400;
  // Each change is a beat whose reply has come. The first one may have been sent before.
  let [endsAt, changes] = [NaN, 0];
  await eventually(() => {
    const now = running?.leaseEndsAt ?? NaN;
    if (!(Math.abs(now - endsAt) < 100)) changes++;
    endsAt = now;
    return changes > 2;
  });
  expect(endsAt - Date.now()).toBeLessThan(0);
  await eventually(() => running?.signal.aborted === true);
  for (const connection of roles.all("background")) connection.delay.reply = 0;
  end.open();
});
