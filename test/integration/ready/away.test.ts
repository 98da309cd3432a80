import { expect, test } from "vitest";
import type { DelaylineOptions } from "../../../src/index.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { someoneWaits } from "../../helpers/blocked.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl, uniqueName } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

/* Redis is away when somebody polls. */

const nothing = {
  name: "RedisError",
  effect: "none",
  message: expect.stringMatching(
    /^cannot take from queue ".*" \(nothing was sent, so nothing was taken\): Redis c.* ECONNREFUSED .*; start the server/,
  ) as string,
};

test("poll and takeMany say that nothing was sent and nothing taken, where nothing ever connected", async () => {
  const proxy = await startProxy(redisUrl());
  proxy.refuse();
  const options: DelaylineOptions = { redis: proxy.url, transfer: false, callTimeout: 1000 };
  const queue = newLineThatMayFail(options).getBlockingQueue(uniqueName());
  await Promise.all([
    expect(queue.poll(200)).rejects.toMatchObject(nothing),
    expect(queue.takeMany({ limit: 3, timeout: 200 })).rejects.toMatchObject(nothing),
  ]);
});

test("so do later ones while Redis is away; a poll whose block was lost does not", async () => {
  const proxy = await startProxy(redisUrl());
  const line = newLineThatMayFail({ redis: proxy.url, transfer: false });
  const name = uniqueName();
  const queue = line.getBlockingQueue(name);
  const blocked = queue.poll(1500);
  await someoneWaits(newRedis(), name);
  proxy.refuse();
  proxy.cut();
  await eventually(() => line.errors.length > 0);
  const later = queue.poll(100);
  await expect(later).rejects.toMatchObject({
    effect: "none",
    message: expect.stringContaining("nothing was sent, so nothing was taken") as string,
  });
  await expect(blocked).rejects.toMatchObject({ effect: "unknown" });
});
