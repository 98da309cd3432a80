import { expect, it, onTestFinished } from "vitest";
import { Delayline } from "../../../src/index.ts";
import { startCluster } from "../../helpers/cluster.ts";
import { eventually } from "../../helpers/eventually.ts";
import { uniqueName } from "../../helpers/redis.ts";

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
  const name = uniqueName("cluster");
  const delayed = line.getDelayedQueue<string>(name);
  const ready = line.getBlockingQueue<string>(name);
  await delayed.offer("before", 0);
  expect(await ready.take()).toBe("before");

  const waiting = ready.take();
  const slot = await cluster.cluster("KEYSLOT", name);
  const port = Number(cluster.slots[slot]?.[0]?.split(":")[1]);
  const node = nodes.find((candidate) => candidate.port === port);
  await node?.kill();
  await node?.restart();
  await eventually(async () => void (await delayed.offer("after", 0)), { within: 30_000 });
  expect(await waiting).toBe("after");
});
