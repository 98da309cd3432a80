import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { findServer } from "../../src/adapters/testing/find-server.ts";
import { freePort, ServerProcess } from "../../src/adapters/testing/server-process.ts";
import { eventually } from "./eventually.ts";
import { startOwnServer, SYNC_AT_ONCE, type OwnServer } from "./own-server.ts";
import { newRedis } from "./redis.ts";
import { replicated } from "./replicated.ts";

/** Starts a Sentinel for this test alone, with these lines of configuration. Returns its port. */
export async function spawnSentinel(monitoring: readonly string[]): Promise<number> {
  const port = await freePort();
  const config = [`port ${port}`, "bind 127.0.0.1", ...monitoring, ""].join("\n");
  const sentinel = await ServerProcess.spawn(await findServer(process.env), (directory) => {
    // A Sentinel writes its findings into its configuration file.
    const file = join(directory, "sentinel.conf");
    writeFileSync(file, config);
    return [file, "--sentinel"];
  });
  onTestFinished(() => sentinel.stop());
  return port;
}

/** A master with a replica in step, behind a Sentinel, for this test alone. */
export interface SentinelPair {
  readonly master: OwnServer;
  readonly replica: OwnServer;
  readonly sentinelPort: number;
  /** Resolves when the replica has everything that was written until now. */
  readonly handOver: () => Promise<void>;
}

/** @param downAfter milliseconds without a reply after which the master is replaced. */
export async function startSentinelPair(name: string, downAfter = 500): Promise<SentinelPair> {
  const options = { args: SYNC_AT_ONCE };
  const [master, replica] = await Promise.all([startOwnServer(options), startOwnServer(options)]);
  const follower = newRedis(replica.url);
  await follower.call("REPLICAOF", "127.0.0.1", master.port);
  await eventually(async () => (await follower.info()).includes("master_link_status:up"), {
    within: 20_000,
    what: "the replica is in step with its master",
  });
  const sentinelPort = await startSentinel(name, master.port, downAfter);
  const handOver = async () => void (await replicated(master, 1));
  return { master, replica, sentinelPort, handOver };
}

/** Starts a Sentinel for this test, which decides on a failover by itself. Returns its port. */
export async function startSentinel(
  masterName: string,
  masterPort: number,
  downAfter = 500,
): Promise<number> {
  const port = await spawnSentinel([
    `sentinel monitor ${masterName} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${masterName} ${downAfter}`,
    `sentinel failover-timeout ${masterName} 3000`,
  ]);
  const client = new Redis(port, "127.0.0.1");
  client.on("error", () => {});
  await eventually(
    async () => {
      const replicas = (await client.call("SENTINEL", "REPLICAS", masterName)) as unknown[];
      return replicas.length > 0;
    },
    { within: 20_000, what: "the sentinel knows a replica" },
  );
  client.disconnect();
  return port;
}
