import type { Cluster } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { Delayline } from "../../../src/index.ts";
import { startCluster } from "../../helpers/cluster.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { eventually } from "../../helpers/eventually.ts";
import type { OwnServer } from "../../helpers/own-server.ts";
import { newRedis, uniqueName } from "../../helpers/redis.ts";

it("works on a lent Redis Cluster: queues on every node, and aborts lose no message", async () => {
  const { cluster, nodes } = await startCluster();
  const line = new Delayline({ redis: cluster });
  onTestFinished(() => line.close());
  const errors: Error[] = [];
  line.on("error", (error) => errors.push(error));

  // Twelve queues cover all three nodes.
  const names = Array.from({ length: 12 }, () => uniqueName("cluster"));
  const received = await Promise.all(
    names.map(async (name) => {
      const delayed = line.getDelayedQueue<number>(name);
      const ready = line.getBlockingQueue<number>(name);
      const first = ready.take();
      await delayed.offerMany(
        Array.from({ length: 20 }, (_, i) => ({ payload: i, delay: 10 + i * 5 })),
      );
      const payloads = [await first];
      // On a busy machine nothing arrives within 7 ms.
      for (let patience = 7; payloads.length < 20; patience++) {
        const signal = AbortSignal.timeout(patience);
        const more = await ready.takeMany({ limit: 3, signal }).catch(() => []);
        payloads.push(...more);
      }
      return payloads;
    }),
  );
  for (const payloads of received)
    expect(payloads).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(errors).toEqual([]);
  expect(nodes.length).toBe(3);

  // One hash tag means one slot: several queues in one wait.
  const [a, b] = [`{${uniqueName()}}a`, `{${uniqueName()}}b`].map((name, _, all) =>
    name.replace(/\{.*\}/, all[0]?.match(/\{.*\}/)?.[0] ?? ""),
  ) as [string, string];
  await line.getDelayedQueue(b).offer("there", 20);
  expect(await line.getBlockingQueue(a).pollFromAny([b], 5000)).toEqual({
    queue: b,
    payload: "there",
  });

  await line.close();
  expect(await cluster.set("still", "open")).toBe("OK");
});

it("moves and takes again after a node has restarted", async () => {
  const { cluster, nodes } = await startCluster();
  const line = new Delayline({ redis: cluster });
  onTestFinished(() => line.close());
  line.on("error", () => {});
  const { name, delayed, ready } = await inUse(line);
  const waiting = ready.take();
  const node = await nodeOf(name, cluster, nodes);
  await node.kill();
  await node.restart();
  await eventually(async () => void (await delayed.offer("after", 0)), { within: 30_000 });
  expect(await waiting).toBe("after");
});

it("leaves a block alone when another connection to its node is cut", async () => {
  const { cluster, nodes } = await startCluster();
  const line = newLineThatMayFail({ redis: cluster });
  const { name, delayed, ready } = await inUse(line);
  const waiting = ready.take();
  const node = newRedis((await nodeOf(name, cluster, nodes)).url);
  const idsOf = async (role: string) => {
    const clients = String(await node.client("LIST")).split("\n");
    const found = clients.filter((one) => one.includes(` name=delayline:${role}`));
    return found.map((one) => Number(/^id=(\d+)/.exec(one)?.[1]));
  };
  await eventually(async () => (await idsOf("blocking")).length === 1);
  const blocking = await idsOf("blocking");

  // ioredis says then that the node is gone.
  const cut = await idsOf("background");
  expect(cut).not.toEqual([]);
  for (const id of cut) await node.client("KILL", "ID", id);
  await eventually(async () => (await idsOf("background")).some((id) => !cut.includes(id)));
  await delayed.offer("on the same connection", 0);
  expect(await waiting).toBe("on the same connection");
  expect(await idsOf("blocking")).toEqual(blocking);
});

/** A queue through which a message has come already, so that its connections are there. */
async function inUse(line: Delayline) {
  const name = uniqueName("cluster");
  const delayed = line.getDelayedQueue<string>(name);
  const ready = line.getBlockingQueue<string>(name);
  await delayed.offer("before", 0);
  expect(await ready.take()).toBe("before");
  return { name, delayed, ready };
}

/** The master that serves a key. */
async function nodeOf(
  key: string,
  cluster: Cluster,
  nodes: readonly OwnServer[],
): Promise<OwnServer> {
  const slot = await cluster.cluster("KEYSLOT", key);
  return nodes.find(({ port }) => cluster.slots[slot]?.[0]?.endsWith(`:${port}`)) as OwnServer;
}
