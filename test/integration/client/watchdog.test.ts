import { expect, onTestFinished, test } from "vitest";
import { watchOver } from "../../../src/redis/watchdog.ts";
import { eventually } from "../../helpers/eventually.ts";
import { newRedis, redisUrl } from "../../helpers/redis.ts";
import { startProxy } from "../../helpers/tcp-proxy.ts";

test("a connection that goes silent while Redis replies elsewhere is replaced", async () => {
  const proxy = await startProxy(redisUrl());
  const redis = newRedis(proxy.url);
  await redis.ping();
  const other = newRedis();
  const heartbeat = watchOver(
    redis,
    { ask: () => redis.ping(), onSilence: () => {}, every: 1000 },
    async () => void (await other.ping()),
  );
  onTestFinished(() => heartbeat.close());

  for (const connection of proxy.connections) connection.swallow();
  const lost = redis.ping();
  await eventually(() => proxy.acceptedCount === 2, { what: "it has connected again" });
  // The new connection sends again what was not answered.
  expect(await lost).toBe("PONG");
});
