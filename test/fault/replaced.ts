import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import type { TestCluster } from "../helpers/cluster.ts";
import { eventually } from "../helpers/eventually.ts";
import type { OwnServer } from "../helpers/own-server.ts";

/** Resolves when another node than `victim` serves the slot of `key`, to the instant of `performance.now()`. */
export async function replaced(
  cluster: TestCluster,
  victim: OwnServer,
  key: string,
): Promise<number> {
  const slot = await cluster.cluster.cluster("KEYSLOT", key);
  const other = cluster.nodes.find((node) => node !== victim);
  const redis = new Redis(other?.port ?? 0, "127.0.0.1");
  onTestFinished(() => redis.disconnect());
  await eventually(
    async () => {
      const ranges = (await redis.cluster("SLOTS")) as unknown as [
        number,
        number,
        [string, number],
      ][];
      return ranges.some(
        ([from, to, [, port]]) => from <= slot && slot <= to && port !== victim.port,
      );
    },
    { within: 30_000, what: "a replica has taken over" },
  );
  return performance.now();
}
