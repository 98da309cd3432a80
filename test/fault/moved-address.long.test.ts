import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import type { DelaylineOptions } from "../../src/index.ts";
import { eventually } from "../helpers/eventually.ts";
import { startOwnServer } from "../helpers/own-server.ts";
import { newRedis, reconnectOnError } from "../helpers/redis.ts";
import { startProxy } from "../helpers/tcp-proxy.ts";
import { Traffic } from "./traffic.ts";

/*
 * One address, behind which another server becomes the master, as managed services do it. The old master turns into a
 * replica, and its connections stay open.
 */

const clients: Record<string, (url: string) => NonNullable<DelaylineOptions["redis"]>> = {
  "a URL": (url) => url,
  options: (url) => ({ host: "127.0.0.1", port: Number(new URL(url).port) }),
  "a lent client with reconnectOnError": (url) => {
    const redis = new Redis(url, { reconnectOnError });
    onTestFinished(() => redis.disconnect());
    return redis;
  },
};

for (const [from, client] of Object.entries(clients)) {
  test(`clients made from ${from} follow an address that moves`, async () => {
    const [old, next] = [await startOwnServer(), await startOwnServer()];
    const [oldRedis, nextRedis] = [newRedis(old.url), newRedis(next.url)];
    await nextRedis.call("REPLICAOF", "127.0.0.1", old.port);
    await eventually(async () => (await nextRedis.info()).includes("master_link_status:up"), {
      within: 20_000,
    });
    const proxy = await startProxy(old.url);
    const traffic = new Traffic(() => ({ redis: client(proxy.url) }), 100);
    await traffic.isFlowing();

    await nextRedis.call("REPLICAOF", "NO", "ONE");
    proxy.moveTo(next.url);
    await oldRedis.call("REPLICAOF", "127.0.0.1", next.port);
    const movedAt = performance.now();
    await eventually(() => traffic.untilDelivered(movedAt) < Infinity, { within: 20_000 });
    await traffic.end();

    // Less than 2 s on a quiet machine. A client that stays connected to the old master is refused for ever.
    expect(traffic.untilAcknowledged(movedAt)).toBeLessThan(10_000);
    expect(traffic.untilDelivered(movedAt)).toBeLessThan(10_000);
    expect([...traffic.rejected.values()].map(({ message }) => message)).toEqual([]);
    // What the old master accepted after the new one had left it: replication is asynchronous.
    expect(traffic.lostAt.filter((at) => at > movedAt + 1000)).toEqual([]);
  }, 90_000);
}
