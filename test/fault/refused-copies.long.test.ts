import { Cluster } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { startCluster } from "../helpers/cluster.ts";
import { newLineThatMayFail } from "../helpers/delayline.ts";
import { eventually } from "../helpers/eventually.ts";
import { newRedis, uniqueName } from "../helpers/redis.ts";

/* As in refused-copies.test.ts: on a Cluster, whose client sends a command again over a new connection to the node. */

test.each([{}, { partitions: 2 }])(
  "on a Cluster a stored offer whose second copy is refused is unknown: %o",
  async (queueOptions) => {
    const cluster = await startCluster();
    for (const { url } of cluster.nodes) {
      await newRedis(url).call("ACL", "SETUSER", "app", "on", ">secret", "+@all", "~*", "&*");
    }
    const lent = new Cluster(
      cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })),
      { slotsRefreshInterval: 2000, redisOptions: { username: "app", password: "secret" } },
    );
    lent.on("error", () => {});
    onTestFinished(() => lent.disconnect());
    const line = newLineThatMayFail({ redis: lent, transfer: false, codec: "string" });
    const queue = line.getDelayedQueue<string>(uniqueName(), queueOptions);
    const watcher = newLineThatMayFail({ redis: cluster.cluster, transfer: false });
    const seen = watcher.getDelayedQueue(queue.name, queueOptions);
    await queue.offer("warm", 3_600_000, of(1));

    // ioredis connects to a node when it sends the first command there.
    const nodes = lent.nodes("master").filter(({ status }) => status === "ready");
    const sockets = nodes.map(({ stream }) => stream);
    for (const socket of sockets) socket.pause();
    const offering = queue.offer("payload", 3_600_000, of(2));
    await eventually(async () => (await seen.size()) === 2);
    for (const { url } of cluster.nodes) {
      await newRedis(url).call("ACL", "SETUSER", "app", "-eval", "-evalsha");
    }
    for (const socket of sockets) socket.destroy();
    await expect(offering).rejects.toMatchObject({ reply: "NOPERM", effect: "unknown" });

    const next = queue.offer("payload", 3_600_000, of(3));
    await expect(next).rejects.toMatchObject({ reply: "NOPERM", effect: "none" });
    expect(await seen.size()).toBe(2);
  },
  60_000,
);

/** Options of an offer. All go to one partition. */
function of(order: number) {
  return { key: `order:${order}`, partitionKey: "customer" };
}
