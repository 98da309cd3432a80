import { setTimeout as sleep } from "node:timers/promises";
import { Cluster, Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { eventually } from "./eventually.ts";
import { OwnServer, SYNC_AT_ONCE } from "./own-server.ts";
import { newRedis } from "./redis.ts";

const SLOTS = 16_384;

/** Starts a Redis Cluster for this test alone, with three masters by default and, if wanted, one replica each. */
export async function startCluster(
  options: {
    readonly withReplicas?: boolean;
    readonly masters?: number;
    /** Whether the Cluster refuses all keys while some slots are not served, which is Redis's default. */
    readonly isWhole?: boolean;
    /** The client's own; 16 by default. */
    readonly maxRedirections?: number;
  } = {},
): Promise<TestCluster> {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", ...SYNC_AT_ONCE];
  if (options.isWhole === false) args.push("--cluster-require-full-coverage", "no");
  const start = async (): Promise<OwnServer> => {
    const node = await OwnServer.start({ args });
    onTestFinished(() => node.stop());
    return node;
  };
  const each = Array.from({ length: options.masters ?? 3 });
  const masters = await Promise.all(each.map(start));
  const replicas = options.withReplicas === true ? await Promise.all(each.map(start)) : [];
  const nodes = [...masters, ...replicas];
  const clients = nodes.map(({ port }) => new Redis(port, "127.0.0.1"));
  await Promise.all(
    clients.map(async (client, i) => {
      const from = Math.ceil((SLOTS * i) / masters.length);
      const to = Math.ceil((SLOTS * (i + 1)) / masters.length);
      const slots = Array.from({ length: to - from }, (_, k) => from + k);
      if (i < masters.length) await client.cluster("ADDSLOTS", ...slots);
      // The bus port is the default, the server's port plus 10000: our ports are low enough for that.
      for (const { port } of nodes) await client.cluster("MEET", "127.0.0.1", port);
    }),
  );
  await Promise.all(
    clients.map((client) => infoHas(client, `cluster_known_nodes:${nodes.length}`)),
  );
  for (const [i, client] of clients.slice(masters.length).entries()) {
    const master = await clients[i]?.cluster("MYID");
    await eventually(async () => (await client.cluster("REPLICATE", String(master))) === "OK");
    await eventually(async () => (await client.info()).includes("master_link_status:up"), {
      within: 20_000,
      what: "a replica is in step with its master",
    });
  }
  await Promise.all(clients.map((client) => infoHas(client, "cluster_state:ok")));
  await Promise.all(clients.map((client) => knowsReplicas(client, replicas.length)));
  for (const client of clients) client.disconnect();
  const addresses = nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
  const cluster = new Cluster(addresses, {
    slotsRefreshInterval: 1000,
    maxRedirections: options.maxRedirections ?? 16,
  });
  cluster.on("error", () => {});
  onTestFinished(() => cluster.disconnect());
  return { cluster, nodes: masters, replicas };
}

/** A Redis Cluster: an ioredis client, the masters, and their replicas if there are any. */
export interface TestCluster {
  readonly cluster: Cluster;
  readonly nodes: readonly OwnServer[];
  readonly replicas: readonly OwnServer[];
}

/** The master that serves a key, as the client knows it. */
export async function masterOf(
  { cluster, nodes }: Pick<TestCluster, "cluster" | "nodes">,
  key: string,
): Promise<OwnServer> {
  const slot = await cluster.cluster("KEYSLOT", key);
  const find = () => {
    const port = Number(cluster.slots[slot]?.[0]?.split(":")[1]);
    return nodes.find((candidate) => candidate.port === port);
  };
  // A client may have asked a node that did not know all masters yet. It soon asks again.
  await eventually(() => find() !== undefined, { what: `a master serves slot ${slot}` });
  return find() as OwnServer;
}

/** A move of a slot from one master to another that has begun. */
interface SlotMove {
  readonly slot: number;
  readonly source: Redis;
  readonly target: Redis;
  readonly targetId: string;
  /** Moves some of its keys; returns how many. */
  readonly moveKeys: (most: number) => Promise<number>;
  /** To be called when it has no key left. */
  readonly end: () => Promise<void>;
}

async function slotMoveOf(masters: readonly OwnServer[], key: string): Promise<SlotMove> {
  const nodes = masters.map(({ url }) => newRedis(url));
  // Ask a node: a client's own map of the slots may be old.
  const [first] = nodes as [Redis];
  const slot = await first.cluster("KEYSLOT", key);
  const ranges = await first.cluster("SLOTS");
  const [, , master] = ranges.find(([from, to]) => from <= slot && slot <= to)!;
  const from = masters.findIndex(({ port }) => port === master?.[1]);
  const to = from === 0 ? 1 : 0;
  const [source, target] = [nodes[from], nodes[to]] as [Redis, Redis];
  const targetId = await target.cluster("MYID");
  return {
    slot,
    source,
    target,
    targetId,
    moveKeys: async (most) => {
      const keys = await source.cluster("GETKEYSINSLOT", slot, most);
      const { port } = masters[to] as OwnServer;
      if (keys.length > 0) {
        await source.call("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", ...keys);
      }
      return keys.length;
    },
    end: async () => {
      for (const node of [target, ...nodes]) await node.cluster("SETSLOT", slot, "NODE", targetId);
    },
  };
}

/**
 * Begins to move a key's slot to another master, as `redis-cli --cluster reshard` does: every key is here or there, and
 * none of the two serves a command for keys in both.
 */
export async function beginSlotMove(
  masters: readonly OwnServer[],
  key: string,
): Promise<Pick<SlotMove, "moveKeys" | "end">> {
  const move = await slotMoveOf(masters, key);
  const { slot, source, target, targetId } = move;
  await target.cluster("SETSLOT", slot, "IMPORTING", await source.cluster("MYID"));
  await source.cluster("SETSLOT", slot, "MIGRATING", targetId);
  return move;
}

/** Moves a key's slot with all its keys to another master, as `redis-cli --cluster reshard` does. */
export async function moveSlotOf(masters: readonly OwnServer[], key: string): Promise<void> {
  const { moveKeys, end } = await beginSlotMove(masters, key);
  // A few at a time, so that some keys are here and some there.
  while ((await moveKeys(2)) > 0) await sleep(50);
  await end();
}

/** Moves a key's slot with all its keys to another master in one step, as Valkey 9 can. */
export async function moveSlotAtOnce(masters: readonly OwnServer[], key: string): Promise<void> {
  const { slot, source, target, targetId } = await slotMoveOf(masters, key);
  await source.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", slot, slot, "NODE", targetId);
  const hasSlot = async () => {
    const ranges = await target.cluster("SLOTS");
    const [, , master] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
    return master?.[2] === targetId;
  };
  await eventually(hasSlot, { within: 30_000, what: `slot ${slot} has moved` });
}

/** Waits until a node knows `count` replicas. A node does not vote for a replica that it does not know. */
export async function knowsReplicas(client: Redis, count: number): Promise<void> {
  const known = async () => String(await client.cluster("NODES")).match(/[ ,]slave /g) ?? [];
  await eventually(async () => (await known()).length === count, {
    within: 30_000,
    what: `a node of the Cluster knows ${count} replicas`,
  });
}

async function infoHas(client: Redis, text: string): Promise<void> {
  await eventually(async () => (await client.cluster("INFO")).includes(text), {
    within: 30_000,
    what: text,
  });
}
